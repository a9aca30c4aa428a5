"""A receiver of webhooks on loopback: it keeps what is posted, and answers as a test says."""

import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from weft_testing.loopback_server import LoopbackServer, QuietHandler


@dataclass(frozen=True, slots=True)
class Post:
    """One post as it arrived."""

    path: str
    headers: dict[str, str]
    """Their names in lower case."""
    body: bytes
    status: int
    """What it was answered with."""


class HookServer:
    """A context manager; `url` is where to post to. `answer` says the status for the body of a post."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.answer: Callable[[bytes], int] = lambda body: 204
        self.more: dict[str, str] = {}
        """Further headers of each answer."""
        self._posts: list[Post] = []
        self._lock = threading.Lock()
        hook = self

        class HookHandler(QuietHandler):
            def do_POST(self) -> None:
                hook._take(self)

        self._server = LoopbackServer(HookHandler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._server.port}/hook"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def posts(self) -> list[Post]:
        """All that came so far."""
        with self._lock:
            return list(self._posts)

    def _take(self, asked: Any) -> None:
        body: bytes = asked.rfile.read(int(asked.headers["content-length"]))
        status = self.answer(body)
        headers = {name.lower(): text for name, text in asked.headers.items()}
        with self._lock:
            self._posts.append(Post(asked.path, headers, body, status))
        asked.send_response(status)
        for name, text in {"content-length": "0", **self.more}.items():
            asked.send_header(name, text)
        asked.end_headers()
