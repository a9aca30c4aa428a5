"""`PUT /api/uploads/{files}/{name}`: a part of a file, handed on to the node that waits for it."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, cast

from fastapi import APIRouter, Header, Request
from starlette.requests import ClientDisconnect
from weft_api import Uploaded
from weft_contracts.content_range import BadRange, ContentRange, content_range, range_there, said, there_of
from weft_contracts.ids import NodeId
from weft_contracts.uploads import CHECKSUM_HEADER
from weft_fleet import NodeView
from weft_runtime.logs import get_logger

from weft_gateway.domain.pace import LEAST, OVER_S, Pace
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.uploads import SOON, Destination, destination
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.outbound import node_http
from weft_gateway.outbound.node_http import NodeResponse, NodeUnreachable
from weft_gateway.projections.directory import Directory

AT_ONCE: Final = 16
"""Requests of this gateway that bring bytes."""
ASKED_AT_ONCE: Final = 64
"""Those that ask how much is there."""
_MOST_ANSWER: Final = 64 * 1024
_HANDED_ON: Final = frozenset((400, 408, 409, 416, 503, 507))
_log: Any = get_logger("weft.gateway.uploads")
Part = Annotated[str, Header(alias="content-range", max_length=100)]
Checksum = Annotated[str, Header(alias=CHECKSUM_HEADER, max_length=100)]
Secured = Callable[[NodeId], Mapping[str, Any] | None]
_BODY: Final[dict[str, Any]] = {
    "requestBody": {"content": {"application/octet-stream": {}}, "description": "The bytes of the range"}
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one request that brings bytes."""

    silence_s: float = 60.0
    """Of the sender, and of the node while it takes what comes."""
    least: float = LEAST
    """Bytes a second of either, over any `over_s` seconds in which it is waited for."""
    over_s: float = OVER_S
    answer_s: float = 600.0
    """For a node that has all of a file: it writes it to its disk for good and looks at what it is."""
    asked_s: float = 30.0
    """For a node that is asked how much is there, which it knows."""

    def pace(self) -> Pace:
        """Of one of the two."""
        return Pace(self.least, self.over_s)


class Uploads:
    """Hands bytes on as they come. Nothing of them is kept here, and a node that takes them slowly slows its sender."""

    def __init__(
        self, directory: Directory, secured: Secured = lambda _: None, *, bounds: Bounds | None = None
    ) -> None:
        """`secured`: how a node is asked over TLS, see `node_http.put`; None of it: plainly."""
        self._directory = directory
        self._secured = secured
        self._bounds = bounds or Bounds()
        self._running = {False: 0, True: 0}
        """Now: requests that bring bytes, and those that ask."""
        self.router = APIRouter(tags=["models"], responses=PROBLEMS)
        add = answering(self.router)
        partly: dict[int | str, dict[str, Any]] = {
            308: {"model": Uploaded, "description": "`range` says what is there"}
        }
        add("/api/uploads/{files}/{name}", self.put, "PUT", responses=partly, openapi_extra=_BODY)

    async def put(
        self, request: Request, files: str, name: str, part: Part = "", checksum: Checksum = ""
    ) -> Answer[Uploaded]:
        """Send a part of a file that a deploy told of; `files` is the `upload` of its answer.

        `content-range: bytes FIRST-LAST/TOTAL` says which part of at most 64 MiB the body is; `bytes */TOTAL` asks,
        with no body. 200 once the mesh has the whole file, verified, also where nobody needs to send it; 308 until
        then, with `range: bytes=0-LAST` of what is there; 416, likewise, for a part that doesn't begin there. 409 for
        another content (`weft-checksum`) or size, 400 for a whole file that isn't what was said, of which nothing
        stays; 503 with `retry-after` while no node waits for it.
        """
        range = _range(part, request.headers.get("content-length", "0"))
        to = destination(self._directory.fleet, files, name)
        if range.total != to.file.size:
            what = f"{name} is to have {to.file.size} bytes, and one of {range.total} is sent; deploy it again."
            raise Refused(409, what, code="upload_changed")
        if checksum and checksum != to.file.checksum:
            what = f"{name} is to be {to.file.checksum}, and {checksum[:80]!r} is sent; deploy it again."
            raise Refused(409, what, code="upload_changed")
        if to.node is None:
            return Answer({"bytes": to.file.size, "size": to.file.size})
        self._check_free(range)
        self._running[range.asks] += 1
        try:
            return await self._handed_on(request, to, to.node, f"/uploads/{files}/{name}", range)
        except NodeUnreachable as away:
            what = f"Node {to.node.name} {away}, and it is the one that waits for the file; it is {to.node.state}."
            raise Refused(503, what, code="node_away", headers=SOON) from None
        except (ClientDisconnect, TimeoutError):
            what = (
                f"No more came within {self._bounds.silence_s:g} s, or less than {self._bounds.least:g} bytes a second."
            )
            raise Refused(408, what, headers={"connection": "close"}) from None
        finally:
            self._running[range.asks] -= 1

    def _check_free(self, range: ContentRange) -> None:
        most, what = (ASKED_AT_ONCE, "questions are open") if range.asks else (AT_ONCE, "files are sent")
        if self._running[range.asks] >= most:
            raise Refused(503, f"{most} {what} already.", code="too_many_uploads", headers=SOON)

    async def _handed_on(
        self, request: Request, to: Destination, node: NodeView, path: str, range: ContentRange
    ) -> Answer[Uploaded]:
        headers = {"content-range": said(range), CHECKSUM_HEADER: to.file.checksum}
        answer = await node_http.put(
            node.addresses.host,
            node.addresses.http_port,
            path,
            headers,
            _pieces(request, range.end - range.start, self._bounds),
            range.end - range.start,
            self._secured(node.id),
            silence_s=self._bounds.silence_s,
            pace=self._bounds.pace(),
            answer_s=self._bounds.asked_s if range.asks else self._bounds.answer_s,
        )
        async with answer:
            return await _answer(node, answer, self._bounds.silence_s)


def _range(part: str, length: str) -> ContentRange:
    """Raises Refused, 400, where the body can't be what its headers say."""
    try:
        range = content_range(part)
    except BadRange as bad:
        raise Refused(400, f"{bad}.", param="content-range") from None
    if length != str(range.end - range.start):
        what = f"`content-length` is {length[:20]}, and `content-range` tells of {range.end - range.start} bytes."
        raise Refused(400, what, param="content-length")
    return range


async def _pieces(request: Request, length: int, bounds: Bounds) -> AsyncGenerator[bytes]:
    """The body as it comes. Raises ClientDisconnect, and TimeoutError where nothing does, or too little."""
    stream, pace = request.stream(), bounds.pace()
    while length:
        began = time.monotonic()
        async with asyncio.timeout(bounds.silence_s):
            piece = await anext(stream, None)
        if piece is None:
            return
        if pace.drips(time.monotonic() - began, len(piece)):
            raise TimeoutError
        length -= len(piece)
        yield piece


async def _answer(node: NodeView, answer: NodeResponse, within_s: float) -> Answer[Uploaded]:
    """What the node says, in the gateway's words. Raises Refused and NodeUnreachable."""
    content = await answer.body(_MOST_ANSWER, within_s)
    try:
        body: Any = json.loads(content)
        there = there_of(answer.headers.get("range", ""))
        if answer.status in (200, 308):
            told = cast("Mapping[str, Any]", body)
            uploaded: Uploaded = {"bytes": int(told["bytes"]), "size": int(told["size"])}
            reply = Answer(uploaded, answer.status)
            reply.headers.update(range_there(there) if answer.status == 308 else {})
            return reply
        detail = str(body["detail"])[:500]
    except (ValueError, KeyError, TypeError, RecursionError, BadRange):
        raise Refused(502, f"Node {node.name} answers in no form that this gateway knows.", code="bad_node") from None
    sentence = f"Node {node.name}: {detail}."
    if answer.status == 404:  # it has not heard of its replica yet, or waits for it no more
        raise Refused(503, sentence, code="upload_not_awaited", headers=SOON)
    if answer.status not in _HANDED_ON:
        _log.warning("a node refused an upload", node=node.id, status=answer.status, said=detail)
        raise Refused(502, f"Node {node.name} answered {answer.status}: {detail}.", code="bad_node")
    again = SOON if answer.status == 503 else {}
    raise Refused(answer.status, sentence, code="upload_refused", headers={**range_there(there), **again})
