"""uvicorn's HTTP protocol with bounds on what comes before anything is checked: a head's size and its time."""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

MOST_HEAD: Final = 64 * 1024
"""Bytes of a request line and headers, or of what stands around and behind a body; and as much again as comes in one
piece."""
HEAD_S: Final = 30.0
"""For a head to come, from the connection's or its first byte on; and for more of a body that is answered already."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """One connection. What is too large is answered 431, what is too late 408, and closed."""

    _head_since: float | None = None
    """When the head that is awaited began, or what came last of a body that is answered already; None: neither."""
    _outside = 0
    """Bytes that came since the last head began or the last part of a body, and are neither."""
    _steps = 0
    _watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_since = self.loop.time()
        self._look()

    def data_received(self, data: bytes) -> None:
        before = self._steps
        super().data_received(data)
        if self._steps == before:
            self._outside += len(data)
            if self._outside > MOST_HEAD and not self.transport.is_closing():
                self._refuse(431, f"The head of the request is larger than {MOST_HEAD} bytes.")
        if self._head_since is None and not self._answering:
            self._head_since = self.loop.time()  # uvicorn's keep-alive ended with what came, be it an empty line

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_since = self.loop.time()
        self._step()

    def on_headers_complete(self) -> None:
        self._head_since = None
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head_since = None
        self._step()
        super().on_body(body)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def _step(self) -> None:
        self._steps += 1
        self._outside = 0

    def _look(self) -> None:
        """Now and then: a head that doesn't come, while nothing is answered, ends the connection."""
        if self._head_since is not None and not self._answering and self.loop.time() - self._head_since > HEAD_S:
            self._refuse(408, f"The request did not come within {HEAD_S:g} s.")
        else:
            self._watch = self.loop.call_later(HEAD_S / 2, self._look)

    @property
    def _answering(self) -> bool:
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    def _refuse(self, status: int, sentence: str) -> None:
        """Answer, where nothing else is being answered, and close: what comes behind is not read."""
        if self._answering:
            self.transport.abort()
            return
        body = sentence.encode()
        head = b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()
