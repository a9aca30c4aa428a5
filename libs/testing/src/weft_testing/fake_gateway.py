"""A small HTTP server in a gateway's place, for tests of what asks one: client, embedded mesh, command line."""

import contextlib
import http.server
import json
import threading
from collections.abc import Generator
from typing import Any

Answers = dict[tuple[str, str], tuple[int, Any]]


class FakeGateway:
    """Says what it is told to, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: Answers = {}
        """Status and body by method and path."""
        self.otherwise: tuple[int, Any] = (404, {"detail": "no such route"})
        """To all else."""
        self.asked: list[tuple[str, str, Any]] = []
        """Method, path, body."""
        self.headers: list[dict[str, str]] = []
        fake = self

        class GatewayHandler(http.server.BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked = json.loads(body) if body else None
                fake.asked.append((self.command, self.path, asked))
                fake.headers.append(dict(self.headers.items()))
                status, said = fake.answers.get((self.command, self.path), fake.otherwise)
                content = said if isinstance(said, bytes) else json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), GatewayHandler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@contextlib.contextmanager
def fake_gateway() -> Generator[FakeGateway]:
    """One that answers until the context ends."""
    fake = FakeGateway()
    thread = threading.Thread(target=fake.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield fake
    finally:
        fake.server.shutdown()
        thread.join()
        fake.server.server_close()
