"""What a node's own HTTP server is asked, at its registered address: the answer's head, then its body in pieces.

Over asyncio's streams and httptools, which the gateway's own server has loaded anyway: an HTTP client would cost
this process 8 MB for routes that are rarely asked. What isn't read is not taken from the socket, so a slow reader
holds nothing; nor is more given to a socket than its other end takes.
"""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncGenerator, Mapping
from ssl import SSLError
from types import TracebackType
from typing import Any, Self

import httptools
from weft_contracts.engines.server_url import fault_of_address

from weft_gateway.domain.pace import Pace

_CONNECT_S = 5.0
_READ = 64 * 1024
_UNSENT = 64 * 1024
"""Bytes of a body that wait here to be sent, in TLS and in the system's own buffer, each."""
_MAX_HEAD = 64 * 1024
_MOST_ADDRESSES = 16


class NodeUnreachable(Exception):
    """The node's server doesn't answer, or not in HTTP; the message is a sentence's end."""


class NodeResponse:
    """An answer that has begun. Close it, or use it as a context manager."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._parser: Any = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._head_done = self._done = False
        self._host_closed = False
        self.status = 0
        self.headers: dict[str, str] = {}
        """By their names in lower case; the last of each name."""

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self._head_done = True

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        self._done = True

    async def pieces(self, silence_s: float) -> AsyncGenerator[bytes]:
        """The body. Raises NodeUnreachable when it breaks off or nothing comes for so many seconds."""
        while True:
            if self._parts:
                parts, self._parts = self._parts, []
                yield b"".join(parts)
            if self._done:
                return
            await self._feed(silence_s)

    async def body(self, limit: int, within_s: float) -> bytes:
        """The whole body. Raises NodeUnreachable if it is larger than `limit` bytes or takes longer."""
        found = bytearray()
        try:
            async with asyncio.timeout(within_s):
                async for piece in self.pieces(within_s):
                    found += piece
                    if len(found) > limit:
                        raise NodeUnreachable(f"sends more than {limit} bytes")
        except TimeoutError:
            raise NodeUnreachable(f"was not done within {within_s:g} s") from None
        return bytes(found)

    async def head(self, within_s: float | None = _CONNECT_S) -> None:
        """Read up to the status; `within_s` bounds each silence, None: nothing does. Raises NodeUnreachable."""
        seen = 0
        while not self._head_done:
            seen += await self._feed(within_s)
            if seen > _MAX_HEAD and not self._head_done:
                raise NodeUnreachable("does not answer in HTTP")

    async def _feed(self, within_s: float | None) -> int:
        try:
            data = await asyncio.wait_for(self._reader.read(_READ), within_s)
            if not data:
                raise NodeUnreachable("broke the answer off")
            self._parser.feed_data(data)
        except TimeoutError:
            raise NodeUnreachable(f"said nothing for {within_s:g} s") from None
        except OSError as error:
            raise NodeUnreachable(f"broke the answer off ({error.strerror or error})") from None
        except httptools.HttpParserError:
            raise NodeUnreachable("does not answer in HTTP") from None
        return len(data)

    def close(self) -> None:
        """Let the connection go, read to its end or not."""
        self._writer.transport.abort()
        self._parser = None  # it knows us: a circle would keep what TLS has buffered until the collector comes by

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


async def get(host: str, port: int, path: str, secured: Mapping[str, Any] | None = None) -> NodeResponse:
    """Ask; returns once the status is known. Redirects are not followed. Raises NodeUnreachable.

    `secured`: over TLS, as `asyncio.open_connection` takes it (`ssl`, `server_hostname`); None: plain.
    """
    reader, writer = await _connected(host, port, secured)
    answer = NodeResponse(reader, writer)
    try:
        writer.write(_head("GET", host, port, path, {}))
        await answer.head()
    except BaseException:
        with contextlib.suppress(Exception):
            answer.close()
        raise
    return answer


async def put(
    host: str,
    port: int,
    path: str,
    headers: Mapping[str, str],
    pieces: AsyncGenerator[bytes],
    length: int,
    secured: Mapping[str, Any] | None = None,
    *,
    silence_s: float,
    pace: Pace,
    answer_s: float,
) -> NodeResponse:
    """Give a body of so many bytes, piece by piece as the node takes them; a node that answers before is given no more.

    However long the body takes: what ends it is that the node takes nothing for `silence_s`, or less than `pace` asks
    for. `answer_s` bounds the wait for the answer's head once the last piece is given. Raises NodeUnreachable, and what
    `pieces` raises, after which the node sees its request broken off.
    """
    reader, writer = await _connected(host, port, secured)
    _hold_little(writer)
    answer = NodeResponse(reader, writer)
    answered = asyncio.ensure_future(answer.head(None))
    answered.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        writer.write(_head("PUT", host, port, path, {**headers, "content-length": str(length)}))
        async for piece in pieces:
            if answered.done() or not await _given(writer, piece, silence_s, pace):
                break
        try:
            async with asyncio.timeout(answer_s):
                await answered
        except TimeoutError:
            raise NodeUnreachable(f"has all and did not answer within {answer_s:g} s") from None
    except BaseException:
        answered.cancel()
        with contextlib.suppress(Exception):
            answer.close()
        raise
    return answer


def _hold_little(writer: asyncio.StreamWriter) -> None:
    """So that it is soon seen what the other end takes: the system would hold megabytes, and TLS half of one, and tell
    of room in as large steps."""
    writer.transport.set_write_buffer_limits(high=_UNSENT)
    with contextlib.suppress(OSError):  # where the system can't, it is seen later
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)


async def _given(writer: asyncio.StreamWriter, piece: bytes, silence_s: float, pace: Pace) -> bool:
    """Whether the other end still takes what is written; if it has closed, its answer may say why."""
    left = writer.transport.get_write_buffer_size
    try:
        writer.write(piece)
        while True:
            before, began, more = left(), time.monotonic(), False
            try:
                async with asyncio.timeout(silence_s):
                    await writer.drain()
            except TimeoutError:
                more = True
            taken = before - left()
            if more and taken <= 0:
                raise NodeUnreachable(f"took nothing for {silence_s:g} s")
            if pace.drips(time.monotonic() - began, taken):
                raise NodeUnreachable(f"took less than {pace.least:g} bytes a second")
            if not more:
                return True
    except OSError:
        return False


async def _connected(
    host: str, port: int, secured: Mapping[str, Any] | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    named: dict[str, Any] = {"server_hostname": host, **secured} if secured else {}
    try:
        async with asyncio.timeout(_CONNECT_S):
            *others, last = await _addresses(host, port)
            for address in others:
                with contextlib.suppress(OSError):
                    return await asyncio.open_connection(address, port, limit=_READ, **named)
            return await asyncio.open_connection(last, port, limit=_READ, **named)
    except TimeoutError:
        raise NodeUnreachable(f"did not take a connection within {_CONNECT_S:g} s") from None
    except SSLError as error:
        from weft_runtime.tls import why

        raise NodeUnreachable(f"takes no connection ({why(error)})") from None
    except (OSError, UnicodeError) as error:
        raise NodeUnreachable(f"takes no connection ({getattr(error, 'strerror', None) or error})") from None


async def _addresses(host: str, port: int) -> list[str]:
    """What a registered host comes to, at least one, each checked. A worker registers where it likes, and what is
    connected to is what was checked: the name is not resolved again.

    Raises NodeUnreachable, OSError, UnicodeError.
    """
    try:
        faults = {host: fault_of_address(host)}
    except ValueError:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [str(each[4][0]) for each in found][:_MOST_ADDRESSES]
        faults = {address: fault_of_address(address) for address in addresses}
    for fault in faults.values():
        if fault is not None:
            raise NodeUnreachable(f"is not asked: {fault}")
    if not faults:
        raise OSError(f"{host} has no address")
    return list(faults)


def _head(method: str, host: str, port: int, path: str, headers: Mapping[str, str]) -> bytes:
    """Raises UnicodeError for what can't stand in a head."""
    name = f"[{host}]" if ":" in host else host
    lines = [f"{method} {path} HTTP/1.1", f"Host: {name}:{port}", "Connection: close"]
    lines += [f"{each}: {value}" for each, value in headers.items()]
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode("ascii")
