"""llama.cpp's loopback port: a few kept connections, and no more of HTTP than its server speaks.

Each request of the mesh asks it once, under the interpreter's lock that the running answers need too, so it is
written out here: the standard library's client takes six times as long.
"""

import json
import socket
from collections import deque
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

ANSWER_S: Final = 30.0
CONNECTIONS: Final = 3
"""Each holds one of the server's four threads; whoever finds all of them busy waits."""

PART_BYTES: Final = 64 * 1024
MAX_HEAD_BYTES: Final = 16 * 1024
END_OF_HEAD: Final = b"\r\n\r\n"


class HttpAnswer(NamedTuple):
    """What the port said."""

    status: int
    body: Any
    """its JSON as Python values"""


class LlamaCppHttp:
    """Asks from any thread; all calls block."""

    def __init__(self, address: str, key: str) -> None:
        where = urlsplit(address)
        self._where = (where.hostname or "127.0.0.1", where.port or 80)
        self._head = f"HTTP/1.1\r\nHost: {where.netloc}\r\nAuthorization: Bearer {key}\r\n"
        self._turns: SimpleQueue[None] = SimpleQueue()
        self._idle: deque[socket.socket] = deque()
        for _ in range(CONNECTIONS):
            self._turns.put(None)

    def ask(self, method: str, path: str, body: object = None) -> HttpAnswer:
        """Ask once, within 30 seconds. Raises OSError, or ValueError for an answer that is not understood."""
        sent = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} {self._head}Content-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n"
        message = head.encode() + sent
        try:
            self._turns.get(timeout=ANSWER_S)
        except Empty:
            raise TimeoutError(f"its port was busy for {ANSWER_S:g} s") from None
        try:
            try:
                return self._exchange(self._idle.pop(), message)
            except TimeoutError:
                raise
            except (IndexError, OSError, ValueError):
                pass  # none is kept, or the server closed it: after long idleness, or many requests
            return self._exchange(self._connect(), message)
        finally:
            self._turns.put(None)

    def close(self) -> None:
        """Close what is kept."""
        while self._idle:
            self._idle.pop().close()

    def _connect(self) -> socket.socket:
        connection = socket.create_connection(self._where, timeout=ANSWER_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _exchange(self, connection: socket.socket, message: bytes) -> HttpAnswer:
        keeps = False
        try:
            connection.sendall(message)
            status, may_keep, body = receive(connection)
            answer = HttpAnswer(status, read_body(body))
            keeps = may_keep
        finally:
            if keeps:
                self._idle.append(connection)
            else:
                connection.close()
        return answer


def receive(connection: socket.socket) -> tuple[int, bool, bytes]:
    """An answer's status, whether the connection may be used again, and its body.

    Raises OSError, or ValueError for an answer without a length.
    """
    data = b""
    while (end := data.find(END_OF_HEAD)) < 0:
        data += part_of(connection)
        if len(data) > MAX_HEAD_BYTES + PART_BYTES:
            raise ValueError("its head does not end")
    status, fields = read_head(data[:end])
    size = int(fields["content-length"]) if "content-length" in fields else -1
    if size < 0:
        raise ValueError("its answer has no length")
    parts = [data[end + len(END_OF_HEAD) :]]
    missing = size - len(parts[0])
    while missing > 0:
        parts.append(part_of(connection))
        missing -= len(parts[-1])
    return status, fields.get("connection") != "close", b"".join(parts)


def read_head(head: bytes) -> tuple[int, dict[str, str]]:
    """Status and fields, all in lower case. Raises ValueError."""
    first, *lines = head.decode("latin-1").lower().split("\r\n")
    if not first.startswith("http/1.1 "):
        raise ValueError(f"its answer begins with {first[:40]!r}")
    return int(first[9:12]), {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def read_body(body: bytes) -> Any:
    """A body's JSON. Raises ValueError."""
    try:
        return json.loads(body)
    except ValueError as error:
        raise ValueError(f"its answer is no JSON: {error}") from None


def part_of(connection: socket.socket) -> bytes:
    """Some more bytes. Raises OSError."""
    part = connection.recv(PART_BYTES)
    if not part:
        raise ConnectionResetError("it closed the connection")
    return part
