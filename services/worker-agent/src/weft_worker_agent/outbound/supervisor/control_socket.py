"""The supervisor's unix socket: who is connected, what they ask, what waits to be sent to them."""

import contextlib
import json
import os
import socket
from collections.abc import Callable
from typing import Any

MAX_REQUEST = 1 << 20
MAX_WAITING = 8 << 20
"""Bytes that may wait for a client that doesn't read; above that it is cut off."""
FRESH = ".new"
"""Behind the path, until the socket listens."""
_READ = 64 * 1024
_MAX_CLIENTS = 32


class Client:
    """One connection. A follower is told of every change instead of being answered."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.fd = connection.fileno()
        self.follows = False
        self.open = True
        self._in = b""
        self._out = bytearray()

    @property
    def wants_to_write(self) -> bool:
        return bool(self._out)

    def requests(self) -> list[bytes]:
        """What came: whole lines. Closes on the end, on an error and on a line that is too long."""
        try:
            data = self.socket.recv(_READ)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.open = False
            return []
        *lines, self._in = (self._in + data).split(b"\n")
        if len(self._in) > MAX_REQUEST:
            self.open = False
        return lines

    def send(self, message: dict[str, Any]) -> None:
        self._out += json.dumps(message, separators=(",", ":")).encode() + b"\n"
        if len(self._out) > MAX_WAITING:
            self.open = False
        self.flush()

    def flush(self) -> None:
        try:
            while self._out and self.open:
                del self._out[: self.socket.send(self._out)]
        except BlockingIOError:
            pass
        except OSError:
            self.open = False


class ControlSocket:
    """The listening socket and its connections."""

    def __init__(self, path: str, answer: Callable[[object], dict[str, Any]]) -> None:
        self.path = path
        self._answer = answer
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        fresh = path + FRESH
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh)
        self._listening.bind(fresh)
        os.chmod(fresh, 0o600)
        self._listening.listen(8)
        self._listening.setblocking(False)
        os.rename(fresh, path)  # who finds the path finds it answering; one of a killed supervisor gives way
        self.fd = self._listening.fileno()
        self.by_fd: dict[int, Client] = {}

    def accept(self) -> Client | None:
        """Take a new connection; None if there is none, or too many are open."""
        try:
            connection, _ = self._listening.accept()
        except OSError:
            return None
        if len(self.by_fd) >= _MAX_CLIENTS:
            connection.close()
            return None
        client = Client(connection)
        self.by_fd[client.fd] = client
        return client

    def serve(self, client: Client) -> None:
        """Read what a client asks and answer it."""
        for line in client.requests():
            try:
                request: object = json.loads(line)
            except ValueError:
                client.send({"ok": False, "error": "not a JSON line"})
                continue
            if request == {"op": "follow"}:
                client.follows = True
                client.send({"ok": True})
            else:
                client.send(self._answer(request))

    def tell(self, host_id: str) -> None:
        """Tell followers that something about a host changed: they list and see."""
        for client in self.by_fd.values():
            if client.follows:
                client.send({"changed": host_id})

    def drop(self, client: Client) -> None:
        del self.by_fd[client.fd]
        client.socket.close()

    def close(self) -> None:
        for client in list(self.by_fd.values()):
            self.drop(client)
        self._listening.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
