"""The node's file server: metadata files by registered name, of a replica or of a model, never by path."""

import asyncio
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from weft_contracts.card import BY_SLUG, CHECKSUM
from weft_runtime.logs import get_logger

from weft_worker_agent.inbound.problem import problem
from weft_worker_agent.outbound.files import private_file
from weft_worker_agent.outbound.files.metadata import Offer

_PORT_FILE = "http_port"

_log: Any = get_logger("weft.files")


def metadata_route(offer: Callable[[str, str], Offer | None]) -> Route:
    """`GET /metadata/<replica>/<name>`: 200 with the bytes, 404 for what no run registered, 500 if a registered
    file is gone."""

    async def metadata(request: Request) -> Response:
        replica, name = request.path_params["replica"], request.path_params["name"]
        found = offer(replica, name)
        if found is None:
            return problem(404, f"no run of {replica!r} on this node registered a file {name!r}")
        return await _answer(found)

    return Route("/metadata/{replica}/{name}", metadata, methods=["GET"])


def card_route(offer: Callable[[str, str, str], Offer | None]) -> Route:
    """`GET /v1/metadata/<slug>/<name>`: the same of a model. `?checksum=blake3:…`: of several contents that runs of
    the model registered under the name, such as those of two revisions, this one; 404 where it isn't among them."""

    async def card_file(request: Request) -> Response:
        slug, name = request.path_params["slug"], request.path_params["name"]
        checksum = request.query_params.get(CHECKSUM, "")
        found = offer(slug, name, checksum)
        if found is None:
            which = f" with {checksum[:80]!r}" if checksum else ""
            return problem(404, f"no run of {slug!r} on this node registered a file {name!r}{which}")
        return await _answer(found)

    return Route(f"{BY_SLUG}/{{slug}}/{{name}}", card_file, methods=["GET"])


def listening(state: Path, host: str, port: int) -> socket.socket:
    """A listening socket; for port 0 the one of the last start if it is free, so that the node's registered
    address stays true. Raises OSError with a sentence."""
    pinned = port or _pinned(state)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in dict.fromkeys((pinned, port)):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, candidate))
        except OSError as error:
            listener.close()
            if candidate == port:
                raise OSError(
                    f"the file server can't listen on {host}:{candidate} ({error.strerror}): "
                    "set WEFT_HTTP_HOST or WEFT_HTTP_PORT"
                ) from None
            continue
        listener.listen(64)
        private_file.write(state / _PORT_FILE, str(listener.getsockname()[1]).encode())
        return listener
    raise AssertionError("the last candidate is bound or raises")


def _pinned(state: Path) -> int:
    text = private_file.read(state / _PORT_FILE) or b"0"
    return int(text) if text.isdigit() and int(text) < 65536 else 0


async def _answer(offer: Offer) -> Response:
    """The content, in ranges and small pieces, however long it is."""
    file = offer.file
    headers = {"etag": f'"{file.blake3}"'}
    if isinstance(offer.content, bytes):
        return Response(offer.content, media_type="application/octet-stream", headers=headers)
    path = offer.content
    try:
        found = await asyncio.to_thread(os.stat, path)
        why = "is no file" if not stat.S_ISREG(found.st_mode) else ""
        if not why and found.st_size != file.size:
            why = f"has {found.st_size} bytes and had {file.size}"
    except OSError as error:
        why = str(error)
    else:
        if not why:
            return FileResponse(path, media_type="application/octet-stream", headers=headers, stat_result=found)
    _log.error("registered file is gone", name=file.name, path=str(path), error=why)
    return problem(500, f"{file.name!r} is registered, and can no longer be read here")
