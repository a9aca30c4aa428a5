"""A web server whose files each behave as a test says: whole, by ranges, cut, dripping, lying, leading on."""

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from email.message import Message
from typing import Final
from urllib.parse import unquote, urlsplit

from weft_testing.loopback_server import LoopbackServer, QuietHandler, serving
from weft_testing.served_files import send_file, send_small

MOST_DRIPPED: Final = 100_000
"""Pieces of one answer that drips, so that every answer ends."""


@dataclass
class WebFile:
    """What lies at one path, and how it is given. May be changed while the server runs."""

    body: bytes = b""
    etag: str = ""
    """With its quotes, as the header has it; empty: none."""
    ranges: bool = True
    status: int = 0
    """Answered instead of the file; 0: the file."""
    redirect: str = ""
    """Where the path leads; empty: nowhere."""
    cut_after: int | None = None
    """Bytes of each answer's body after which the connection is cut."""
    drip: int = 0
    """Bytes that come at a time, 20 times a second; 0: as fast as they can."""
    length: str | None = None
    """What the header says of the length; empty: there is no such header, and the end of the connection is the end."""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    """Further ones."""


class WebServer:
    """Files by path. `asked` counts by method and path; `ranges` are the `Range` headers in order."""

    def __init__(self) -> None:
        self.files: dict[str, WebFile] = {}
        self.asked: Counter[str] = Counter()
        self.ranges: list[tuple[str, str]] = []
        """Path and range of each request; empty: the whole file."""
        self.sent = 0
        """Bytes of bodies."""
        self.hear: Callable[[Message], object] = lambda headers: None
        """Is given the headers of each request."""
        self.stopped = threading.Event()
        self._lock = threading.Lock()
        web = self

        class WebHandler(QuietHandler):
            def do_GET(self) -> None:
                web._answer(self)

            do_HEAD = do_GET

        self.server = LoopbackServer(WebHandler)
        self.url = self.server.url

    def put(self, path: str, file: WebFile) -> str:
        """Lay a file at a path that begins with `/`, and answer its URL."""
        self.files[path] = file
        return f"{self.url}{path}"

    def _answer(self, handler: QuietHandler) -> None:
        path = unquote(urlsplit(handler.path).path)
        with self._lock:
            self.asked[f"{handler.command} {path}"] += 1
            self.ranges.append((path, handler.headers.get("Range") or ""))
        self.hear(handler.headers)
        file = self.files.get(path)
        if file is None:
            return send_small(handler, 404, b"nothing here")
        if file.redirect:
            return send_small(handler, 302, b"", Location=file.redirect)
        if file.status:
            return send_small(handler, file.status, b"as the test says")
        headers = dict(file.headers)
        if file.etag:
            headers["ETag"] = file.etag
        if file.length is not None:
            headers["Content-Length"] = file.length
            handler.close_connection = True
            if not file.length:
                return self._endless(handler, file)
        self._send(handler, file, send_file(handler, file.body, headers, ranges=file.ranges))
        return None

    def _endless(self, handler: QuietHandler, file: WebFile) -> None:
        """A body whose end is the connection's."""
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        self._send(handler, file, b"" if handler.command == "HEAD" else file.body)

    def _send(self, handler: QuietHandler, file: WebFile, body: bytes) -> None:
        if file.cut_after is not None and len(body) > file.cut_after:
            body = body[: file.cut_after]
            handler.close_connection = True
        step = file.drip or len(body) or 1
        for number, begin in enumerate(range(0, len(body), step)):
            if number >= MOST_DRIPPED or (file.drip and self.stopped.wait(0.05)):
                break
            with self._lock:  # before they go, so that whoever read them finds them counted
                self.sent += len(body[begin : begin + step])
            handler.wfile.write(body[begin : begin + step])


@contextlib.contextmanager
def web_server() -> Generator[WebServer]:
    """One that answers until the context ends."""
    web = WebServer()
    try:
        with serving(web.server):
            yield web
            web.stopped.set()
    finally:
        web.stopped.set()
