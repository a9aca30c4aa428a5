"""What every request outside the hot routes passes: who may call, its correlation id, its body's size."""

import asyncio
from contextlib import suppress
from typing import Any

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from weft_contracts.uploads import UPLOADS

from weft_gateway.domain.access import (
    MAX_NODES_BODY,
    NODE_ROUTES,
    OPEN_PATHS,
    REGISTER,
    V1,
    AuthContext,
    check_doubled,
    check_fetch,
    check_origin,
    is_file,
    needs_log,
    required_scope,
    starting,
)
from weft_gateway.domain.caller import NOBODY, Caller
from weft_gateway.domain.problems import PROBLEM, openai_error, problem
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.request_headers import check_chunk, check_json, checked_correlation_id, header
from weft_gateway.inbound.http.authenticator import Authenticator

BODY_WAIT_S = 60.0
"""How long a request's body may take to come."""
_LINGER_S = 2.0


def caller_of(request: Request) -> Caller:
    """Who asks, on any route behind the auth middleware."""
    return request.state.caller


def may_go_on(request: Request) -> bool:
    """Whether a stream without an end may go on: its caller's key hasn't ended since."""
    try:
        request.state.authenticator.recheck(caller_of(request))
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


class _Answered(Exception):
    """A request that the authenticator itself has answered."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


class AuthMiddleware:
    """ASGI middleware. A body is read whole before the route sees it: those here are small, but for uploads, which
    their route hands on as they come."""

    def __init__(
        self, app: ASGIApp, *, authenticator: Authenticator, max_body: int, max_admin_body: int, instance: str
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._max_body = max_body
        self._max_admin_body = max_admin_body
        self._instance = instance
        self._last = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"the gateway has no routes of type {scope['type']}")
        path: str = scope["path"]
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        self._last += 1
        correlation_id = f"{self._instance}-a{self._last:x}"
        cors = self._authenticator.cors
        shared = cors.headers(path, header(headers, b"origin")) if cors is not None else []
        head = scope["method"] == "HEAD"

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers_sent = (*message.get("headers", ()), (b"x-request-id", correlation_id.encode()), *shared)
                await send({**message, "headers": headers_sent})
                if head:  # at once, and so a stream without an end ends too
                    await send({"type": "http.response.body"})
            elif not head:
                await send(message)

        try:
            caller = self._caller(scope, path, headers)
            if needs_log(path) and not self._authenticator.ready():
                raise starting()
            correlation_id = checked_correlation_id(header(headers, b"x-request-id")) or correlation_id
            if scope["method"] in ("POST", "PUT", "PATCH", "DELETE"):
                if scope["method"] == "PUT" and path.startswith(UPLOADS):
                    check_chunk(headers)
                else:
                    receive = _replay(await self._body(path, headers, receive), receive)
                self._authenticator.recheck(caller)
        except _Answered as answered:
            await answered.response(scope, receive, send)
            return
        except Refused as refused:
            refused = self._counted(scope, path, headers, refused)
            await respond(path, refused)(scope, receive, send_on)
            return
        if head:
            scope = {**scope, "method": "GET"}
        state = Request(scope).state
        state.correlation_id = correlation_id
        state.caller = caller
        state.authenticator = self._authenticator
        state.head_only = head
        with structlog.contextvars.bound_contextvars(correlation_id=correlation_id):
            await self._app(scope, receive, send_on)

    def _caller(self, scope: Scope, path: str, headers: list[tuple[bytes, bytes]]) -> Caller:
        """Who asks. Raises Refused; _Answered for a browser that asks whether its page may."""
        peer, authenticator = _peer(scope), self._authenticator
        context = authenticator.read_context(headers, peer, path, http10=scope["http_version"] == "1.0")
        check_doubled(context)
        nodes_own = path in NODE_ROUTES
        if path in OPEN_PATHS and not nodes_own:
            return NOBODY
        if context.origin_allowed and scope["method"] == "OPTIONS":
            self._check_preflight(path, context, headers)
        if not context.origin_allowed:
            check_fetch(header(headers, b"sec-fetch-site"), header(headers, b"sec-fetch-mode"))
        if nodes_own:
            check_origin(context)
            if (path == REGISTER or scope["method"] != "POST") and authenticator.is_rate_limited(context):
                authenticator.count_attempt("join", headers, peer)
            return NOBODY
        if is_file(path) and authenticator.policy == "keys":
            check_origin(context)
            authenticator.count_attempt("look", headers, peer)
            return NOBODY
        return authenticator.authenticate(context, headers, required_scope(scope["method"], path))

    def _check_preflight(self, path: str, context: AuthContext, headers: list[tuple[bytes, bytes]]) -> None:
        """Raises _Answered for a browser's question, which never bears a key. Raises Refused, 429."""
        assert self._authenticator.cors is not None
        allowed = self._authenticator.cors.preflight(path, context.origin, headers)
        if allowed is None:
            return
        if self._authenticator.policy == "keys":
            self._authenticator.count_attempt("look", headers, context.peer)
        response = Response(status_code=204)
        response.raw_headers = allowed
        raise _Answered(response)

    def _counted(self, scope: Scope, path: str, headers: list[tuple[bytes, bytes]], refused: Refused) -> Refused:
        """What a body that a node's route doesn't even read is answered with: it counts as one that is no good."""
        if path in NODE_ROUTES and refused.status in (408, 413, 415):
            try:
                self._authenticator.count_attempt("proof", headers, _peer(scope), refused.sentence)
            except Refused as too_often:
                too_often.headers |= refused.headers
                return too_often
        return refused

    async def _body(self, path: str, headers: list[tuple[bytes, bytes]], receive: Receive) -> bytes:
        """The whole body, of JSON. Raises Refused, 408, 413 or 415."""
        if header(headers, b"transfer-encoding") or int(header(headers, b"content-length") or 0):
            check_json(headers)
        most = self._max_body if path.startswith(V1) else self._max_admin_body
        if path in NODE_ROUTES:
            most = MAX_NODES_BODY
        try:
            async with asyncio.timeout(BODY_WAIT_S):
                return await self._whole(headers, receive, most)
        except TimeoutError:
            what = f"The body did not come within {BODY_WAIT_S:g} s."
            raise Refused(408, what, code="body_late", headers={"connection": "close"}) from None

    async def _whole(self, headers: list[tuple[bytes, bytes]], receive: Receive, most: int) -> bytes:
        too_large = Refused(413, f"The body is larger than {most} bytes; make it smaller.", code="body_too_large")
        too_large.headers["connection"] = "close"
        if int(header(headers, b"content-length") or 0) > most:
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
            if size > most:
                await _discard(receive)
                raise too_large
            if not message.get("more_body"):
                break
        return b"".join(parts)


def _peer(scope: Scope) -> str | None:
    return scope["client"][0] if scope.get("client") else None


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
