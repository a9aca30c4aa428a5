"""An HTTP server on loopback in threads of this process, which ends with its context, whatever its clients do."""

import contextlib
import socket
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class QuietHandler(BaseHTTPRequestHandler):
    """HTTP/1.1 without a log; a client that goes away is no error."""

    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        """Answer one connection's requests."""
        with contextlib.suppress(ConnectionError, TimeoutError, ValueError):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class LoopbackServer(ThreadingHTTPServer):
    """Ends its open connections when it is closed, so that no thread outlives it."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler: type[BaseHTTPRequestHandler], host: str = "127.0.0.1") -> None:
        """`host`: another address of this machine, such as one in a network namespace."""
        self._open: set[socket.socket] = set()
        super().__init__((host, 0), handler)
        self.port: int = self.server_address[1]
        self.url = f"http://{host}:{self.port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own."""
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Called by the thread when its connection is done."""
        self._open.discard(request)
        super().shutdown_request(request)

    def cut_all(self) -> None:
        """Cut every connection that is open now."""
        for each in tuple(self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def serving(server: LoopbackServer) -> Generator[None]:
    """Serve until the context ends."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.cut_all()
        thread.join(10)
        server.server_close()
