"""A NATS client that holds one socket, however often it tries.

The client library forgets the socket of an attempt that was refused, so that one stays open until the garbage
collector comes by; and after a TLS handshake that failed it waits without a bound for an end that nobody tells it.
"""

import asyncio
import contextlib
import ssl
import time
from typing import Any, Protocol
from urllib.parse import ParseResult

from nats.aio.client import DEFAULT_BUFFER_SIZE, Client
from nats.aio.transport import TcpTransport

from weft_eventlog.cancelling import end_if_cancelled

CLOSE_S = 2.0
"""So long an orderly end may take: a peer that is gone never confirms it."""


class _Server(Protocol):
    """What is used here of the library's own class for one of its servers."""

    uri: ParseResult
    last_attempt: float | None


class OneSocket(Client):
    """Ends the socket before it opens another one, and when an attempt fails."""

    async def _connect_to_server(self, s: _Server) -> None:
        end_if_cancelled()
        s.last_attempt = time.monotonic()
        if not isinstance(self._transport, _Transport):
            self._transport = _Transport()
        await self._transport.connect(s.uri, DEFAULT_BUFFER_SIZE, self.options["connect_timeout"])

    def drop(self) -> None:
        """End the socket at once. For a client whose `connect` did not come about."""
        if isinstance(self._transport, _Transport):
            self._transport.drop()


async def connected(servers: str | list[str], *, client: OneSocket | None = None, **options: Any) -> OneSocket:
    """`nats.connect` with one socket. Raises what `Client.connect` raises, and leaves nothing open then.

    `client`: one that was not connected yet; None: a new one.
    """
    client = client or OneSocket()
    try:
        await client.connect(servers, **options)
        end_if_cancelled()
    except BaseException:
        client.drop()
        raise
    return client


class _Transport(TcpTransport):
    async def connect(self, uri: ParseResult, buffer_size: int, connect_timeout: int) -> None:
        self.drop()
        await super().connect(uri, buffer_size, connect_timeout)

    async def connect_tls(
        self, uri: str | ParseResult, ssl_context: ssl.SSLContext, buffer_size: int, connect_timeout: int
    ) -> None:
        try:
            await super().connect_tls(uri, ssl_context, buffer_size, connect_timeout)
        except BaseException:
            self.drop()
            raise

    async def wait_closed(self) -> None:
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await super().wait_closed()
        finally:
            self.drop()

    def drop(self) -> None:
        """End what is open, at once. What was not sent yet is lost."""
        for writer in (self._io_writer, self._bare_io_writer):
            if writer is not None:
                writer.transport.abort()
        self._io_reader = self._io_writer = self._bare_io_reader = self._bare_io_writer = None
