"""A web server for one file, over real sockets, that can be told to behave badly."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

Send = Callable[[socket.socket, "Request"], None]


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]

    @property
    def span(self) -> tuple[int, int] | None:
        """The range that it asks for: from, and up to."""
        text = self.headers.get("range", "")
        if not text:
            return None
        start, _, last = text.removeprefix("bytes=").partition("-")
        return int(start), int(last) + 1


@dataclass
class Origin:
    """Answers each connection in a thread of its own by `send`."""

    send: Send
    context: ssl.SSLContext | None = None
    asked: list[Request] = field(default_factory=list[Request])

    def __post_init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"{'https' if self.context else 'http'}://127.0.0.1:{self.port}/model.gguf"

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for each in tuple(self._open):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(each, socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                taken, _ = self._listening.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._serve, args=(taken,)))
            self._threads[-1].start()

    def _serve(self, taken: socket.socket) -> None:
        taken.settimeout(20)
        with contextlib.suppress(OSError, ValueError):
            if self.context is not None:
                taken = self.context.wrap_socket(taken, server_side=True)
            self._open.add(taken)
            while (request := _read(taken)) is not None:
                self.asked.append(request)
                self.send(taken, request)
        self._open.discard(taken)
        taken.close()


def _read(taken: socket.socket) -> Request | None:
    text = b""
    while not text.endswith(b"\r\n\r\n"):
        came = taken.recv(4096)
        if not came:
            return None
        text += came
    first, *lines = text.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines if line)
    return Request(first.split(" ")[1], headers)


def head(status: int, **headers: object) -> bytes:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode()


def whole(content: bytes, etag: str = "") -> Send:
    """An honest server that knows no ranges."""

    def send(taken: socket.socket, request: Request) -> None:
        taken.sendall(head(200, content_length=len(content), **({"etag": etag} if etag else {})) + content)

    return send


def ranged(content: bytes, etag: str = '"one"') -> Send:
    """An honest server of ranges, with If-Range."""

    def send(taken: socket.socket, request: Request) -> None:
        span = request.span
        if span is None or request.headers.get("if-range", etag) != etag:
            taken.sendall(head(200, content_length=len(content), etag=etag) + content)
        else:
            start, end = span[0], min(span[1], len(content))
            said = f"bytes {start}-{end - 1}/{len(content)}"
            taken.sendall(head(206, content_length=end - start, content_range=said, etag=etag) + content[start:end])

    return send


def closing(*parts: bytes) -> Send:
    """Sends these bytes, whatever is asked, and closes."""

    def send(taken: socket.socket, request: Request) -> None:
        for part in parts:
            taken.sendall(part)
        taken.shutdown(socket.SHUT_WR)

    return send


@contextlib.contextmanager
def serving(send: Send, context: ssl.SSLContext | None = None) -> Generator[Origin]:
    origin = Origin(send, context)
    try:
        yield origin
    finally:
        origin.close()
