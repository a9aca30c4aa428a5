"""uvicorn's HTTP protocol with a short way for the hot routes: no ASGI message, no task, no queue per token."""

import asyncio
import re
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from weft_gateway.domain.problems import PROBLEM, openai_error, phrase, problem
from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.http.exchange import Exchange, Handler

HOT_ROUTES = {b"/v1/chat/completions": "chat", b"/v1/completions": "completion", b"/v1/embeddings": "embedding"}
MAX_HEAD_BYTES = 64 * 1024
"""Of a request line and headers, and as much again as comes in one piece."""
HEAD_WAIT_S = 30.0
"""How long they may take to come, from the connection's or their first byte on."""


class FrontDoor(HttpToolsProtocol):
    """One connection. `handler` is set by `front_door`."""

    handler: ClassVar[Handler]
    url = b""
    _active: Exchange | None = None
    _head_since = 0.0
    """When the head that is awaited began; 0: none is."""
    _heads = 0
    """Heads that have begun."""
    _head_bytes = 0
    """What came of the last one, without the piece that it began in."""
    _watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_since = self.loop.time()
        self._look_at_head()

    def data_received(self, data: bytes) -> None:
        before = self._heads
        super().data_received(data)
        if self._head_since and self._heads == before:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                what = f"The head of the request is larger than {MAX_HEAD_BYTES} bytes; send fewer headers."
                self._refuse(Refused(431, what, code="head_too_large"))

    def send_400_response(self, msg: str) -> None:
        """uvicorn's word for what its parser does not take."""
        self._refuse(Refused(400, "This is not HTTP/1.1 that can be read.", code="malformed_http"))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_since = self.loop.time()
        self._heads += 1
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        self._head_since = 0.0
        if self.url[:1] != b"/":
            self._take_host_from_target()
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
        if self._watch is not None:
            self._watch.cancel()
        if self._active is not None:
            self._active.lost()
            self._active = None
        super().connection_lost(exc)
        # a circle otherwise, which a gateway's collector looks for seldom
        self.cycle = None  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]

    def _take_host_from_target(self) -> None:
        """A target in absolute form names the host itself; `Host` then says nothing (RFC 9112, 3.2.2)."""
        scheme, mark, rest = self.url.partition(b"://")
        if mark and scheme.lower() in (b"http", b"https"):
            named = re.split(rb"[/?#]", rest, maxsplit=1)[0].rpartition(b"@")[2]
            self.headers[:] = [(name, named if name == b"host" else value) for name, value in self.headers]

    def _look_at_head(self) -> None:
        """Now and then: a head that doesn't come, while nothing else does, ends the connection."""
        cycle: Any = self.cycle
        answering = cycle is not None and not cycle.response_complete
        if self._head_since and not answering and self.loop.time() - self._head_since > HEAD_WAIT_S:
            self._refuse(Refused(408, f"The request did not come within {HEAD_WAIT_S:g} s.", code="head_late"))
        else:
            self._watch = self.loop.call_later(HEAD_WAIT_S / 2, self._look_at_head)

    def _refuse(self, refused: Refused) -> None:
        """Answer what is no request, and close."""
        openai = self.url.startswith(b"/v1/")
        body = openai_error(refused) if openai else problem(refused)
        lines = [
            f"HTTP/1.1 {refused.status} {phrase(refused.status)}".encode(),
            *(b"%b: %b" % header for header in self.server_state.default_headers),
            b"content-type: " + (b"application/json" if openai else PROBLEM.encode()),
            b"content-length: %d" % len(body),
            b"connection: close",
        ]
        self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        self.transport.close()


def front_door(handler: Handler) -> type[asyncio.Protocol]:
    """The protocol class to give to uvicorn as `http`."""
    return type("FrontDoor", (FrontDoor,), {"handler": handler})
