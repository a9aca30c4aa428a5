"""One connection to an OpenAI server: HTTP/1.1, one answer at a time, and a bound for all that comes in."""

import asyncio
from typing import Final, Protocol

import httptools

MAX_HEAD_BYTES: Final = 32 * 1024
_OVER: Final = "closed the connection before its answer was whole"


class Receiver(Protocol):
    """Takes one answer, on the loop. Nothing is called after `ended`."""

    most_bytes: int
    """of the whole answer, head included; more ends it"""

    def begun(self, status: int, headers: dict[str, str]) -> None:
        """The head; names are in lower case."""
        ...

    def received(self, data: bytes) -> None:
        """A part of the body."""
        ...

    def ended(self, fault: str) -> None:
        """The answer is whole, or a fault says why it isn't, as what follows the server's name."""
        ...


class Connection(asyncio.Protocol):
    """A socket and the answer that is on its way over it."""

    def __init__(self) -> None:
        self.heard_at = 0.0
        """The loop's time of the last bytes."""
        self.answered = False
        """Something came since the last request."""
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._receiver: Receiver | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._begun = False
        self._complete = False
        self._more = False
        self._bytes = 0

    @property
    def usable(self) -> bool:
        """It is open and no answer is on its way."""
        return self._transport is not None and not self._transport.is_closing() and self._receiver is None

    def send(self, message: bytes, receiver: Receiver) -> None:
        """Send a request, whose answer goes to the receiver."""
        assert self._transport is not None
        assert self._receiver is None
        self._receiver = receiver
        self._bytes, self._begun, self._complete, self.answered = 0, False, False, False
        self._headers = {}
        self._transport.write(message)

    def fail(self, fault: str) -> None:
        """End the answer that is on its way with a fault, and the connection."""
        self.abort()
        self._end(fault)

    def abort(self) -> None:
        """Close at once; what is on its way is lost without a word."""
        if self._transport is not None:
            self._transport.abort()

    def drop(self) -> None:
        """Nobody wants the answer any more."""
        self._receiver = None
        self.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        until_closed = self._begun and not ({"content-length", "transfer-encoding"} & self._headers.keys())
        if until_closed and exc is None:
            self._end("")
        else:
            self._end(_OVER if exc is None else f"{_OVER}: {exc}")

    def data_received(self, data: bytes) -> None:
        receiver = self._receiver
        if receiver is None:
            self.abort()  # nothing was asked
            return
        self.heard_at = self._loop.time()
        self.answered = True
        self._bytes += len(data)
        if self._bytes > receiver.most_bytes:
            self.fail(f"sent more than the {receiver.most_bytes} bytes that an answer may have")
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.fail("speaks no HTTP/1.1")
            return
        if not self._begun and self._bytes > MAX_HEAD_BYTES:
            self.fail(f"sent a head of more than {MAX_HEAD_BYTES} bytes")
        elif self._complete:
            self._whole()

    # what the parser calls

    def on_message_begin(self) -> None:
        self._more = self._complete  # a second answer to one request

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200 or self._complete:
            return
        self._begun = True
        if self._receiver is not None:
            self._receiver.begun(status, self._headers)

    def on_body(self, body: bytes) -> None:
        if self._receiver is not None and not self._complete:
            self._receiver.received(body)

    def on_message_complete(self) -> None:
        if self._begun:
            self._complete = True
        else:
            self._headers = {}  # an interim answer; the real one follows

    def _whole(self) -> None:
        if self._more or not self._parser.should_keep_alive():
            self.abort()
        self._end("")

    def _end(self, fault: str) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.ended(fault)
