"""The node's file server: metadata files by replica and registered name, never by path."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from weft_runtime.logs import get_logger

from weft_worker_agent.outbound.files import private_file
from weft_worker_agent.outbound.files.metadata import MAX_BYTES, Offer

_PORT_FILE = "http_port"
_log: Any = get_logger("weft.files")


def metadata_route(offer: Callable[[str, str], Offer | None]) -> Route:
    """`GET /metadata/<replica>/<name>`: 200 with the bytes, 404 for what no run registered, 500 if a registered
    file is gone."""

    async def metadata(request: Request) -> Response:
        replica, name = request.path_params["replica"], request.path_params["name"]
        found = offer(replica, name)
        if found is None:
            return _problem(404, f"no run of {replica!r} on this node registered a file {name!r}")
        try:
            content = await asyncio.to_thread(_content, found)
        except OSError as error:
            _log.error("registered file is gone", replica=replica, name=name, error=str(error))
            return _problem(500, f"{name!r} of {replica} is registered, and can no longer be read here")
        return Response(content, media_type="application/octet-stream")

    return Route("/metadata/{replica}/{name}", metadata, methods=["GET"])


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


def _content(offer: Offer) -> bytes:
    if isinstance(offer.content, bytes):
        return offer.content
    with offer.content.open("rb") as file:
        return file.read(MAX_BYTES)


def _problem(status: int, detail: str) -> Response:
    body = {"status": status, "detail": detail}
    return JSONResponse(body, status_code=status, media_type="application/problem+json")
