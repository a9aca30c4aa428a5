"""One request on a hot route and its response, written straight to the transport.

It stands in uvicorn's place of a request cycle, so that keep-alive and pipelining stay uvicorn's.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from weft_gateway.domain.caller import Caller
from weft_gateway.domain.problems import openai_error, phrase
from weft_gateway.domain.refused import Refused

Headers = list[tuple[bytes, bytes]]
BODY_WAIT_S = 60.0
"""How long a request's body may take to come."""
LINGER_S = 2.0
"""How long what is left of a refused body is read and thrown away, so that the client sees the answer."""


class Abandonable(Protocol):
    """What runs for an exchange and ends when its client goes."""

    def abandon(self) -> None: ...


class Handler(Protocol):
    """Answers hot routes."""

    max_body: int
    slow_client_bytes: int

    def admit(self, exchange: "Exchange") -> None:
        """Check what the headers tell. Raises Refused."""
        ...

    def begin(self, exchange: "Exchange", body: bytes) -> Abandonable | None:
        """The body is complete: answer through the exchange, now or later."""
        ...

    def refused(self, status: int, route: str) -> None:
        """A client is answered with an error."""
        ...

    def shed(self) -> None:
        """A client that reads too slowly was dropped."""
        ...


class _Silent:
    """Stands where uvicorn wakes its ASGI task."""

    def set(self) -> None:
        pass


_SILENT: Any = _Silent()


class Exchange:
    """Implements response_writer.ResponseWriter. Methods may be called after the client is gone."""

    def __init__(
        self,
        handler: Handler,
        route: str,
        headers: Headers,
        peer: str | None,
        transport: asyncio.Transport,
        flow: FlowControl,
        *,
        keep_alive: bool,
        http10: bool,
        expect_continue: bool,
        default_headers: Headers,
        on_response: Callable[[], None],
    ) -> None:
        self.route = route
        self.headers = headers
        self.peer = peer
        self.caller: Caller | None = None
        """Who asks, once admitted."""
        self.http10 = http10
        self.keep_alive = keep_alive
        self.response_complete = False
        self.disconnected = False
        self.message_event = _SILENT
        self.more_body = True
        self._handler = handler
        self._transport = transport
        self._flow = flow
        self._expects = expect_continue
        self._default_headers = default_headers
        self._on_response = on_response
        self._parts: list[bytes] = []
        self._size = 0
        self._turn = False
        self._begun = False
        self._refused: Refused | None = None
        self._running: Abandonable | None = None
        self._timer: asyncio.TimerHandle | None = None
        try:
            handler.admit(self)
            for name, value in headers:
                if name == b"content-length" and int(value) > handler.max_body:
                    raise self._too_large()
        except Refused as refused:
            self._refused = refused

    def start(self) -> None:
        """It is this request's turn on the connection."""
        if self._transport.is_closing():
            return
        self._turn = True
        if not self.more_body:
            self._begin()
        elif self._refused is not None and (self._expects or self._refused.status == 413):
            self._refuse()
        else:
            if self._expects:
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._timer = asyncio.get_running_loop().call_later(BODY_WAIT_S, self._body_is_late)

    def feed(self, body: bytes) -> None:
        """A part of the body came."""
        if self._begun or self.response_complete:
            return
        self._size += len(body)
        if self._size > self._handler.max_body:
            self._parts.clear()
            self._refused = self._too_large()
            if self._turn:
                self._refuse()
        elif self._refused is None:
            self._parts.append(body)

    def complete(self) -> None:
        """The body is whole."""
        self.more_body = False
        self._stop_timer()
        if self.response_complete:
            self._close()  # refused before its body was whole: now the client has seen why
        elif self._turn and not self._begun:
            self._begin()

    def lost(self) -> None:
        """The connection is gone."""
        self.disconnected = True
        self._stop_timer()
        running, self._running = self._running, None
        if running is not None:
            running.abandon()

    def answer(self, status: int, content_type: str, body: bytes, headers: Mapping[str, str]) -> None:
        """See ResponseWriter."""
        if self._transport.is_closing():
            return
        if status >= 400:
            self._handler.refused(status, self.route)
        head = self._head(status, content_type, headers)
        self._transport.write(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body))
        self._done()

    def start_stream(self, headers: Mapping[str, str], first: bytes) -> None:
        """See ResponseWriter.start_stream."""
        if self._transport.is_closing():
            return
        if self.http10:
            self.keep_alive = False
        head = self._head(200, "text/event-stream; charset=utf-8", headers)
        if self.http10:
            self._transport.write(b"%bcache-control: no-cache\r\n\r\n%b" % (head, first))
        else:
            self._transport.write(
                b"%bcache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n"
                % (head, len(first), first)
            )

    def write(self, data: bytes) -> None:
        """See ResponseWriter. The hot path: one write, and a look at the buffer only where it has grown."""
        transport = self._transport
        if transport.is_closing():
            return
        transport.write(data if self.http10 else b"%x\r\n%b\r\n" % (len(data), data))
        if self._flow.write_paused and transport.get_write_buffer_size() > self._handler.slow_client_bytes:
            self._shed()

    def end(self, data: bytes) -> None:
        """See ResponseWriter."""
        if self._transport.is_closing():
            return
        self._transport.write(data if self.http10 else b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data))
        self._done()

    def _begin(self) -> None:
        if self._refused is not None:
            self._refuse()
            return
        self._begun = True
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        running = self._handler.begin(self, body)
        if not self.response_complete:
            self._running = running

    def _head(self, status: int, content_type: str, headers: Mapping[str, str]) -> bytes:
        lines = [
            b"HTTP/1.1 529 " + phrase(529).encode() + b"\r\n" if status == 529 else STATUS_LINE[status],
            *(b"%b: %b\r\n" % header for header in self._default_headers),
            b"content-type: %b\r\n" % content_type.encode(),
            *(f"{name}: {value}\r\n".encode("latin-1", "replace") for name, value in headers.items()),
        ]
        if not self.keep_alive:
            lines.append(b"connection: close\r\n")
        return b"".join(lines)

    def _refuse(self) -> None:
        """Answer before the body is whole; then the connection can't be used again."""
        refused = self._refused
        assert refused is not None
        self._begun = True
        if self.more_body:
            self.keep_alive = False
            self._timer = asyncio.get_running_loop().call_later(LINGER_S, self._close)
        self.answer(refused.status, "application/json", openai_error(refused), refused.headers)

    def _done(self) -> None:
        self.response_complete = True
        self._running = None
        if self.keep_alive:
            self._on_response()
        elif not self.more_body:
            self._close()

    def _close(self) -> None:
        self._stop_timer()
        if not self._transport.is_closing():
            self._transport.close()
            self._on_response()

    def _shed(self) -> None:
        """Drop a client that doesn't read: its neighbours must not pay for it."""
        self._handler.shed()
        self._transport.abort()

    def _body_is_late(self) -> None:
        if not self._begun:
            what = f"The body did not come within {BODY_WAIT_S:g} s."
            self._refused = self._refused or Refused(408, what, code="body_late")
            self._refuse()

    def _too_large(self) -> Refused:
        most = self._handler.max_body
        return Refused(413, f"The body is larger than {most} bytes; make it smaller.", code="body_too_large")

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
