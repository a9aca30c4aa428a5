"""What every request outside the hot routes passes: who may call, its correlation id, its body's size."""

import asyncio
from contextlib import suppress
from typing import Any

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weft_gateway.domain.access import (
    OPEN_PATHS,
    check_fetch,
    check_origin,
    header,
    is_page,
    needed_for,
    needs_log,
    shown,
    starting,
)
from weft_gateway.domain.caller import NOBODY, Caller
from weft_gateway.domain.correlation import accepted
from weft_gateway.domain.problems import PROBLEM, openai_error, problem
from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.http.door import Door

BODY_WAIT_S = 60.0
"""How long a request's body may take to come."""
_LINGER_S = 2.0


def caller_of(request: Request) -> Caller:
    """Who asks, on any route behind the gatekeeper."""
    return request.state.caller


def may_go_on(request: Request) -> bool:
    """Whether a stream without an end may go on: its caller's key hasn't ended since."""
    try:
        request.state.door.still(caller_of(request))
    except Refused:
        return False
    return True


def respond(path: str, refused: Refused) -> Response:
    """An error in the dialect of its route."""
    openai = path.startswith("/v1/")
    body = openai_error(refused) if openai else problem(refused)
    return Response(
        body, status_code=refused.status, media_type="application/json" if openai else PROBLEM, headers=refused.headers
    )


class Gatekeeper:
    """ASGI middleware. A body is read whole before the route sees it: those here are small."""

    def __init__(self, app: ASGIApp, *, door: Door, max_body: int, instance: str) -> None:
        self._app = app
        self._door = door
        self._max_body = max_body
        self._instance = instance
        self._last = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"the gateway has no routes of type {scope['type']}")
        path: str = scope["path"]
        self._last += 1
        correlation_id = f"{self._instance}-a{self._last:x}"

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", correlation_id.encode())]
            await send(message)

        try:
            headers: list[tuple[bytes, bytes]] = scope["headers"]
            caller = self._caller(scope, path, headers)
            if needs_log(path) and not self._door.ready():
                raise starting()
            correlation_id = accepted(header(headers, b"x-request-id")) or correlation_id
            if scope["method"] in ("POST", "PUT", "PATCH", "DELETE"):
                receive = _replay(await self._body(headers, receive), receive)
                self._door.still(caller)
        except Refused as refused:
            await respond(path, refused)(scope, receive, send_with_id)
            return
        state = Request(scope).state
        state.correlation_id = correlation_id
        state.caller = caller
        state.door = self._door
        with structlog.contextvars.bound_contextvars(correlation_id=correlation_id):
            await self._app(scope, receive, send_with_id)

    def _caller(self, scope: Scope, path: str, headers: list[tuple[bytes, bytes]]) -> Caller:
        """Who asks. Raises Refused."""
        if path in OPEN_PATHS:
            return NOBODY
        peer = scope["client"][0] if scope.get("client") else None
        check_fetch(header(headers, b"sec-fetch-site"), header(headers, b"sec-fetch-mode"))
        if is_page(path) and self._door.policy == "keys":
            check_origin(shown(headers, peer))
            return NOBODY
        return self._door.enter(headers, peer, needed_for(scope["method"], path))

    async def _body(self, headers: list[tuple[bytes, bytes]], receive: Receive) -> bytes:
        """The whole body. Raises Refused, 408 or 413."""
        try:
            async with asyncio.timeout(BODY_WAIT_S):
                return await self._whole(headers, receive)
        except TimeoutError:
            what = f"The body did not come within {BODY_WAIT_S:g} s."
            raise Refused(408, what, code="body_late", headers={"connection": "close"}) from None

    async def _whole(self, headers: list[tuple[bytes, bytes]], receive: Receive) -> bytes:
        too_large = Refused(
            413, f"The body is larger than {self._max_body} bytes; make it smaller.", code="body_too_large"
        )
        too_large.headers["connection"] = "close"
        if int(header(headers, b"content-length") or 0) > self._max_body:
            if header(headers, b"expect") is None:
                await _discard(receive)
            raise too_large
        parts: list[bytes] = []
        size = 0
        while True:
            message: Any = await receive()
            if message["type"] != "http.request":
                break
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._max_body:
                await _discard(receive)
                raise too_large
            if not message.get("more_body"):
                break
        return b"".join(parts)


async def _discard(receive: Receive) -> None:
    """Read what still comes of a body, for a while: a client that is still sending would not see the answer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            while (await receive()).get("more_body"):
                pass


def _replay(body: bytes, receive: Receive) -> Receive:
    """Hand the body out once, then what the transport says."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
