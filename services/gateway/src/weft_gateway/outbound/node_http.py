"""A GET from a node's own HTTP server, at its registered address: the answer's head, then its body in pieces.

Over asyncio's streams and httptools, which the gateway's own server has loaded anyway: an HTTP client would cost
this process 8 MB for a route that is rarely asked. What isn't read is not taken from the socket, so a slow reader
holds nothing.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from ssl import SSLError
from types import TracebackType
from typing import Any, Self

import httptools

_CONNECT_S = 5.0
_READ = 64 * 1024
_MAX_HEAD = 64 * 1024


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

    async def head(self) -> None:
        """Read up to the status. Raises NodeUnreachable."""
        seen = 0
        while not self._head_done:
            seen += await self._feed(_CONNECT_S)
            if seen > _MAX_HEAD and not self._head_done:
                raise NodeUnreachable("does not answer in HTTP")

    async def _feed(self, within_s: float) -> int:
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
    try:
        connecting = asyncio.open_connection(host, port, limit=_READ, **(secured or {}))
        reader, writer = await asyncio.wait_for(connecting, _CONNECT_S)
    except TimeoutError:
        raise NodeUnreachable(f"did not take a connection within {_CONNECT_S:g} s") from None
    except SSLError as error:
        from weft_runtime.tls import why

        raise NodeUnreachable(f"takes no connection ({why(error)})") from None
    except (OSError, UnicodeError) as error:
        raise NodeUnreachable(f"takes no connection ({getattr(error, 'strerror', None) or error})") from None
    answer = NodeResponse(reader, writer)
    try:
        name = f"[{host}]" if ":" in host else host
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {name}:{port}\r\nConnection: close\r\n\r\n".encode("ascii"))
        await answer.head()
    except BaseException:
        with contextlib.suppress(Exception):
            answer.close()
        raise
    return answer
