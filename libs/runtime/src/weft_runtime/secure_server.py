"""uvicorn behind TLS, which looks at a connection's first byte first: who speaks plain HTTP is told so.

uvicorn's own TLS drops such a client without a word on either side, keeps its first certificate for ever, and tells
nothing of a client's certificate.
"""

import asyncio
import contextlib
import errno
import json
import socket
import ssl
import weakref
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from weft_runtime.logs import get_logger
from weft_runtime.tls import roles_of, why
from weft_runtime.web import QuietServer

PEER = "weft.peer"
"""In a request's scope: the roles of the client's certificate (a frozenset, empty without one)."""
HANDSHAKE_S = 10.0
"""From the connection on: its first byte, and then the handshake, may take so long each."""
MAX_SHAKING = 1024
"""Connections that have not finished their handshake; one more is closed at once."""
_TLS_HANDSHAKE = 0x16
_PAUSE_S = 0.1
_log: Any = get_logger("weft.tls")

Contexts = Callable[[], ssl.SSLContext]


class SecureServer(QuietServer):
    """Takes listening sockets in `serve`; asks `context` at every connection, so a new certificate counts at once."""

    def __init__(self, config: uvicorn.Config, context: Contexts) -> None:
        super().__init__(config)
        self._context = context
        self._accepting: list[asyncio.Task[None]] = []
        self._shaking: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's own method; raises ValueError without sockets."""
        if not sockets:
            raise ValueError("a server behind TLS is given its listening sockets")
        await super().startup(sockets=[])
        for listener in sockets:
            listener.setblocking(False)
            listener.listen(self.config.backlog)
            self._accepting.append(asyncio.create_task(self._accept(listener), name="tls door"))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's own method."""
        for task in (*self._accepting, *self._shaking):
            task.cancel()
        await asyncio.gather(*self._accepting, *self._shaking, return_exceptions=True)
        await super().shutdown(sockets=sockets)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as error:  # out of descriptors, or gone between its coming and now
                if error.errno in (errno.EBADF, errno.EINVAL):
                    raise
                _log.warning("no connection accepted", error=str(error))
                await asyncio.sleep(_PAUSE_S)
                continue
            if len(self._shaking) >= MAX_SHAKING:
                connection.close()
                continue
            task = asyncio.create_task(self._enter(connection))
            self._shaking.add(task)
            task.add_done_callback(self._shaking.discard)

    async def _enter(self, connection: socket.socket) -> None:
        """Take one connection in. It is handed over or closed."""
        peer = "unknown"
        handed_over = False
        try:
            peer = _text(connection.getpeername())
            connection.setblocking(False)
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            first = await asyncio.wait_for(_first(connection), HANDSHAKE_S)
            if not first:
                return
            if first[0] != _TLS_HANDSHAKE:
                _log.warning("plain connection to a TLS port", peer=peer, remedy="use https")
                with contextlib.suppress(OSError):
                    connection.recv(64 * 1024)  # left unread it would make the close a reset, and the answer be lost
                    connection.send(_told_plainly())
                return
            context = self._context()
            handed_over = True  # from here on the loop closes it
            await asyncio.get_running_loop().connect_accepted_socket(
                self._protocol, connection, ssl=context, ssl_handshake_timeout=HANDSHAKE_S
            )
        except FileNotFoundError:
            _log.info("connection refused", peer=peer, why="there is no certificate here yet")
        except TimeoutError as error:
            _log.info("connection refused", peer=peer, why=why(error))
        except (OSError, EOFError) as error:  # an SSLError is an OSError
            _log.warning("connection refused", peer=peer, why=why(error))
        finally:
            if not handed_over:
                connection.close()

    def _protocol(self) -> asyncio.Protocol:
        make: Any = self.config.http_protocol_class
        protocol = make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
        protocol.app = _WithPeer(protocol.app, protocol)
        return protocol


class _WithPeer:
    """An application that sees in the scope who the connection's other end is."""

    def __init__(self, app: ASGIApp, protocol: Any) -> None:
        self._app = app
        self._protocol = weakref.ref(protocol)  # it has us: a circle would keep what TLS has buffered
        self._roles: frozenset[str] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._roles is None:
            protocol = self._protocol()
            shown = protocol.transport.get_extra_info("ssl_object") if protocol is not None else None
            self._roles = roles_of(shown)
        scope[PEER] = self._roles
        await self._app(scope, receive, send)


async def _first(connection: socket.socket) -> bytes:
    """What comes first, left where it is: enough to tell TLS from HTTP."""
    loop = asyncio.get_running_loop()
    while True:
        with contextlib.suppress(BlockingIOError, InterruptedError):
            return connection.recv(1, socket.MSG_PEEK)
        readable = asyncio.Event()
        loop.add_reader(connection.fileno(), readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(connection.fileno())


def _told_plainly() -> bytes:
    body = json.dumps(
        {
            "type": "about:blank",
            "title": "Bad Request",
            "status": 400,
            "detail": "This port speaks HTTPS: use https:// instead of http://.",
        }
    ).encode()
    head = (
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body


def _text(address: Any) -> str:
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else str(address)
