"""What every request outside the hot routes passes: who may call, its correlation id, its body's size."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weft_gateway.domain.access import OPEN_PATHS, check_access, check_fetch, header, needs_log, starting
from weft_gateway.domain.correlation import accepted
from weft_gateway.domain.problems import PROBLEM, openai_error, problem
from weft_gateway.domain.refused import Refused

BODY_WAIT_S = 60.0
"""How long a request's body may take to come."""
_LINGER_S = 2.0


def respond(path: str, refused: Refused) -> Response:
    """An error in the dialect of its route."""
    openai = path.startswith("/v1/")
    body = openai_error(refused) if openai else problem(refused)
    return Response(
        body, status_code=refused.status, media_type="application/json" if openai else PROBLEM, headers=refused.headers
    )


class Gatekeeper:
    """ASGI middleware. A body is read whole before the route sees it: those here are small."""

    def __init__(
        self, app: ASGIApp, *, anonymous: bool, max_body: int, instance: str, ready: Callable[[], bool]
    ) -> None:
        self._app = app
        self._anonymous = anonymous
        self._max_body = max_body
        self._instance = instance
        self._ready = ready
        self._last = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        self._last += 1
        correlation_id = f"{self._instance}-a{self._last:x}"

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", correlation_id.encode())]
            await send(message)

        try:
            headers: list[tuple[bytes, bytes]] = scope["headers"]
            if path not in OPEN_PATHS:
                peer = scope["client"][0] if scope.get("client") else None
                check_access(peer, header(headers, b"host"), header(headers, b"origin"), anonymous=self._anonymous)
                check_fetch(header(headers, b"sec-fetch-site"), header(headers, b"sec-fetch-mode"))
            if needs_log(path) and not self._ready():
                raise starting()
            correlation_id = accepted(header(headers, b"x-request-id")) or correlation_id
            if scope["method"] in ("POST", "PUT", "PATCH", "DELETE"):
                receive = _replay(await self._body(headers, receive), receive)
        except Refused as refused:
            await respond(path, refused)(scope, receive, send_with_id)
            return
        Request(scope).state.correlation_id = correlation_id
        with structlog.contextvars.bound_contextvars(correlation_id=correlation_id):
            await self._app(scope, receive, send_with_id)

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
