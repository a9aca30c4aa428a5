"""uvicorn's HTTP protocol with a short way for the hot routes: no ASGI message, no task, no queue per token."""

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from weft_gateway.inbound.http.exchange import Exchange, Handler

HOT_ROUTES = {b"/v1/chat/completions": "chat", b"/v1/completions": "completion", b"/v1/embeddings": "embedding"}


class FrontDoor(HttpToolsProtocol):
    """One connection. `handler` is set by `front_door`."""

    handler: ClassVar[Handler]
    _active: Exchange | None = None

    def on_headers_complete(self) -> None:
        parser: Any = self.parser
        route = HOT_ROUTES.get(self.url) or (b"?" in self.url and HOT_ROUTES.get(self.url.partition(b"?")[0]))
        if not route or parser.get_method() != b"POST":
            super().on_headers_complete()
            return
        http10 = parser.get_http_version() == "1.0"
        before: Any = self.cycle
        exchange = Exchange(
            self.handler,
            route,
            self.headers,
            self.client[0] if self.client else None,
            self.transport,
            self.flow,
            keep_alive=not http10 and parser.should_keep_alive(),
            http10=http10,
            expect_continue=self.expect_100_continue,
            date=self.server_state.default_headers,
            on_response=self.on_response_complete,
        )
        if parser.should_upgrade():
            exchange.decline_upgrade()
        self.cycle = exchange  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
        if before is None or before.response_complete:
            self._active = exchange
            exchange.start()
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((exchange, self.app))  # type: ignore[arg-type]  # pyright: ignore

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        if isinstance(cycle, Exchange):
            self._active = cycle
            # Later, not now: a thousand pipelined requests must not nest a thousand calls.
            self.loop.call_soon(cycle.start)
        else:
            super()._start_asgi_task(cycle, app)

    def on_body(self, body: bytes) -> None:
        cycle: Any = self.cycle
        if isinstance(cycle, Exchange):
            cycle.feed(body)
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        cycle: Any = self.cycle
        if isinstance(cycle, Exchange):
            cycle.complete()
        else:
            super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._active is not None:
            self._active.lost()
            self._active = None
        super().connection_lost(exc)
        # a circle otherwise, which a gateway's collector looks for seldom
        self.cycle = None  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]


def front_door(handler: Handler) -> type[asyncio.Protocol]:
    """The protocol class to give to uvicorn as `http`."""
    return type("FrontDoor", (FrontDoor,), {"handler": handler})
