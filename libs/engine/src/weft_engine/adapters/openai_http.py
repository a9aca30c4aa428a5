"""The way to an OpenAI server: where it is, kept connections, and that no address is asked that must not be.

Written out on a parser, as each token of an answer passes here. Proxies of the environment are not used, and a
redirect is an answer like any other: nothing is followed.
"""

import asyncio
import os
import socket
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from weft_contracts.engines.server_url import fault_of_address

from weft_engine.adapters.openai_connection import Connection, Receiver

CONNECT_S: Final = 10.0
KEPT_S: Final = 30.0
"""A connection that was idle for longer is not used again: servers close them."""
MOST_ADDRESSES: Final = 4
MAX_ERROR_BYTES: Final = 128 * 1024


class KeyMissing(Exception):
    """The key that the server wants isn't here; the message is a sentence without it."""


Key = Callable[[], str | None]
"""The key as it is now; None: the server wants none. Raises KeyMissing."""


class ServerAway(Exception):
    """Nothing came of asking it; the message says why, as what follows its name."""


class ServerForbidden(ServerAway):
    """All of its addresses are such that none may be asked."""


@dataclass(slots=True)
class Exchange:
    """A request that was sent or will be, until its answer is over."""

    message: bytes
    receiver: Receiver
    began_at: float
    connection: Connection | None = None
    task: "asyncio.Task[None] | None" = None
    forbidden: bool = False
    again: bool = False
    """The connection was a kept one, which may have been closed meanwhile: then it is sent once more."""

    def cancel(self) -> None:
        """Close its connection, without a word to the receiver."""
        if self.task is not None:
            self.task.cancel()
        if self.connection is not None:
            self.connection.drop()

    def fail(self, fault: str) -> None:
        """Close its connection, and tell the receiver why."""
        self.cancel()
        self.receiver.ended(fault)

    def silent_s(self, now: float) -> tuple[float, bool]:
        """Seconds since the last word, and whether there was any."""
        connection = self.connection
        if connection is None or not connection.answered:
            return now - self.began_at, False
        return now - connection.heard_at, True


@dataclass(slots=True)
class Whole:
    """An answer taken whole."""

    most_bytes: int
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytearray = field(default_factory=bytearray)
    fault: str = ""
    over: "asyncio.Future[None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def begun(self, status: int, headers: dict[str, str]) -> None:
        self.status, self.headers = status, headers

    def received(self, data: bytes) -> None:
        self.body += data

    def ended(self, fault: str) -> None:
        if self.over.done():
            return
        self.fault = fault
        self.over.set_result(None)


class OpenAIHttp:
    """Asks one server. All on the loop."""

    def __init__(self, base_url: str, key: "Key") -> None:
        """`key`: asked at each request. Raises KeyMissing."""
        parts = urlsplit(base_url)
        assert parts.hostname is not None
        self._host = parts.hostname
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._port = parts.port or (443 if self._tls is not None else 80)
        self._path = parts.path.rstrip("/")
        self.name = parts.netloc
        """How people know it: host and port."""
        lines = [f"Host: {parts.netloc}", "User-Agent: weft", "Accept: application/json, text/event-stream"]
        self._head = "".join(f"{line}\r\n" for line in lines)
        self._key = key
        self._shown = ""
        """The key that was shown last."""
        self._kept: deque[tuple[Connection, float]] = deque()
        self._loop = asyncio.get_running_loop()

    def hidden(self, words: str) -> str:
        """What the server said, without the key where it repeats that."""
        return words.replace(self._shown, "…") if self._shown else words

    def begin(self, method: str, path: str, body: bytes, receiver: Receiver) -> Exchange:
        """Send a request; the receiver hears all that comes of it, but never within this call."""
        try:
            self._shown = self._key() or ""
        except KeyMissing as missing:
            exchange = Exchange(b"", receiver, self._loop.time())
            self._loop.call_soon(receiver.ended, f"can't be asked: {missing}")
            return exchange
        head = f"{method} {self._path}{path} HTTP/1.1\r\n{self._head}"
        if self._shown:
            head += f"Authorization: Bearer {self._shown}\r\n"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        exchange = Exchange(f"{head}\r\n".encode() + body, receiver, self._loop.time())
        connection = self._kept_one()
        if connection is None:
            exchange.task = self._loop.create_task(self._dial(exchange), name="openai-dial")
        else:
            exchange.again = True
            self._send(connection, exchange)
        return exchange

    async def ask(self, method: str, path: str, body: bytes, within_s: float, most_bytes: int) -> Whole:
        """Ask and take the whole answer. Raises ServerAway."""
        whole = Whole(most_bytes)
        exchange = self.begin(method, path, body, whole)
        try:
            async with asyncio.timeout(within_s):
                await whole.over
        except TimeoutError:
            raise ServerAway(f"did not answer within {within_s:g} s") from None
        finally:
            exchange.cancel()
        if whole.fault:
            raise (ServerForbidden if exchange.forbidden else ServerAway)(whole.fault)
        return whole

    def close(self) -> None:
        """Close what is kept."""
        while self._kept:
            self._kept.pop()[0].abort()

    def _kept_one(self) -> Connection | None:
        since = self._loop.time() - KEPT_S
        while self._kept:
            connection, at = self._kept.pop()
            if connection.usable and at > since:
                return connection
            connection.abort()
        return None

    def _send(self, connection: Connection, exchange: Exchange) -> None:
        exchange.connection = connection
        connection.send(exchange.message, _Ending(self, exchange))

    async def _dial(self, exchange: Exchange) -> None:
        try:
            async with asyncio.timeout(CONNECT_S):
                connection = await self._connect()
        except TimeoutError:
            exchange.task = None
            exchange.receiver.ended(f"could not be reached within {CONNECT_S:g} s")
        except (OSError, ServerAway) as error:
            exchange.task = None
            exchange.forbidden = isinstance(error, ServerForbidden)
            exchange.receiver.ended(f"can't be reached: {_words(error)}")
        else:
            exchange.task = None
            self._send(connection, exchange)

    async def _connect(self) -> Connection:
        """A new connection. Which addresses the name has is asked each time, and each is looked at."""
        found = await self._loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
        faults = {address: fault_of_address(address) for address in addresses}
        allowed = [address for address in addresses if faults[address] is None][:MOST_ADDRESSES]
        if not allowed:
            raise ServerForbidden(next((fault for fault in faults.values() if fault), "its name has no address"))
        name = self._host if self._tls is not None else None
        last: OSError | None = None
        for address in allowed:
            try:
                _, connection = await self._loop.create_connection(
                    Connection, address, self._port, ssl=self._tls, server_hostname=name
                )
                return connection
            except OSError as error:
                last = error
        assert last is not None
        raise last

    def ended(self, connection: Connection, exchange: Exchange, fault: str) -> None:
        """An answer is over; the connection may serve for the next."""
        exchange.connection = None
        if fault and exchange.again and not connection.answered:
            exchange.again = False
            exchange.task = self._loop.create_task(self._dial(exchange), name="openai-dial")
            return
        if connection.usable:
            self._kept.append((connection, self._loop.time()))
        exchange.receiver.ended(fault)


class _Ending:
    """The receiver as its connection knows it: between both, the end is the pool's too."""

    __slots__ = ("_exchange", "_http", "begun", "most_bytes", "received")

    def __init__(self, http: OpenAIHttp, exchange: Exchange) -> None:
        self._http = http
        self._exchange = exchange
        self.begun = exchange.receiver.begun
        self.received = exchange.receiver.received
        self.most_bytes = exchange.receiver.most_bytes

    def ended(self, fault: str) -> None:
        exchange = self._exchange
        assert exchange.connection is not None
        self._http.ended(exchange.connection, exchange, fault)


def _words(error: Exception) -> str:
    """What the system says of a failed connection, without its numbers."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted here: {error.verify_message}"
    if isinstance(error, socket.gaierror):
        return "its name has no address here"
    if isinstance(error, ssl.SSLError):
        return f"it speaks no TLS that is understood here: {error.reason}"
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno).lower()
    return str(error)
