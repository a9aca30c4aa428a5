"""Spans of HTTP requests, for a gateway that records traces. Elsewhere none of this is imported or in anyone's way."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from weft_runtime import traces

from weft_gateway.domain.access import PROBES
from weft_gateway.domain.request_headers import header
from weft_gateway.inbound.http.exchange import Abandonable, Exchange, Handler
from weft_gateway.inbound.http.hot_path_protocol import HOT_ROUTES

if TYPE_CHECKING:
    from opentelemetry.trace import Span

Headers = list[tuple[bytes, bytes]]
_PATHS = {route: path.decode() for path, route in HOT_ROUTES.items()}
_CLIENT_GONE = 499
"""What servers note for a client that left before its answer."""


class TracedRoutes:
    """Implements exchange.Handler around the hot routes: a span from the body's end to the answer's."""

    def __init__(self, routes: Handler) -> None:
        self.max_body = routes.max_body
        self.slow_client_bytes = routes.slow_client_bytes
        self._routes = routes

    def admit(self, exchange: Exchange) -> None:
        """See exchange.Handler. A request that is refused here has no span."""
        self._routes.admit(exchange)

    def begin(self, exchange: Exchange, body: bytes) -> Abandonable | None:
        """See exchange.Handler."""
        traced = _TracedExchange(exchange, _begin("POST", _PATHS[exchange.route], exchange.headers))
        try:
            traced.running = self._routes.begin(cast(Exchange, traced), body)
        except BaseException as error:
            traced.span.record_exception(error)
            traced.over(500)
            raise
        for name, value in getattr(traced.running, "log_attributes", {}).items():
            traced.span.set_attribute(f"weft.{name}", value)
        return traced if traced.running is not None else None

    def refused(self, status: int, route: str) -> None:
        """See exchange.Handler."""
        self._routes.refused(status, route)

    def shed(self) -> None:
        """See exchange.Handler."""
        self._routes.shed()


class _TracedExchange:
    """An exchange as the hot routes use it: it looks as if the client had named our span as its parent."""

    def __init__(self, exchange: Exchange, span: "Span") -> None:
        self.route = exchange.route
        self.headers = _under(span, exchange.headers)
        self.peer = exchange.peer
        self.caller = exchange.caller
        self.write = exchange.write
        self.span = span
        self.running: Abandonable | None = None
        self._exchange = exchange
        self._status = 200
        self._over = False

    def answer(self, status: int, content_type: str, body: bytes, headers: Mapping[str, str]) -> None:
        """See ResponseWriter."""
        self._name(headers)
        self._exchange.answer(status, content_type, body, headers)
        self.over(status)

    def start_stream(self, headers: Mapping[str, str], first: bytes) -> None:
        """See ResponseWriter."""
        self._name(headers)
        self.span.add_event("first byte")
        self._exchange.start_stream(headers, first)

    def end(self, data: bytes) -> None:
        """See ResponseWriter."""
        self._exchange.end(data)
        self.over(self._status)

    def abandon(self) -> None:
        """See exchange.Abandonable."""
        if self.running is not None:
            for choice in getattr(self.running, "choices", ())[:1]:
                self.span.set_attribute(traces.CORRELATION_ID, choice.correlation_id)
            self.running.abandon()
        self.over(_CLIENT_GONE)

    def over(self, status: int) -> None:
        """End the span, once."""
        if not self._over:
            self._over = True
            _end(self.span, status)

    def _name(self, headers: Mapping[str, str]) -> None:
        if "x-request-id" in headers:
            self.span.set_attribute(traces.CORRELATION_ID, headers["x-request-id"])
        if replica := getattr(self.running, "replica", ""):
            self.span.set_attribute("weft.replica", replica)
        if alias := getattr(self.running, "alias", ""):
            self.span.set_attribute("weft.alias", alias)


class TracedApplication:
    """ASGI middleware around all other routes: what they append follows from their request's span."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        span = _begin(scope["method"], scope["path"], scope["headers"])
        status = 500

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                if given := header(list(message.get("headers", ())), b"x-request-id"):
                    span.set_attribute(traces.CORRELATION_ID, given)
            await send(message)

        with traces.during(span):
            try:
                await self._app(scope, receive, send_on)
            finally:
                route: Any = scope.get("route")
                if route is not None:
                    span.set_attribute("http.route", route.path)
                    span.update_name(f"{scope['method']} {route.path}")
                span.set_attribute("http.response.status_code", status)


def _begin(method: str, path: str, headers: Headers) -> "Span":
    return traces.begin(
        f"{method} {path}",
        "server",
        parent=header(headers, b"traceparent") or "",
        attributes={"http.request.method": method, "url.path": path},
    )


def _end(span: "Span", status: int) -> None:
    span.set_attribute("http.response.status_code", status)
    span.end()


def _under(span: "Span", headers: Headers) -> Headers:
    ours = (b"traceparent", traces.traceparent_of(span).encode())
    return [ours, *(each for each in headers if each[0] != b"traceparent")]
