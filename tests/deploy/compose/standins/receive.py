"""What stands for the collector's image, and for who takes webhooks: each post becomes a line of JSON in /tmp/posts.

    receive.py --config=FILE

It listens where the collector's configuration has OTLP over HTTP taken.
"""

import base64
import json
import re
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

POSTS = Path("/tmp/posts")
WRITING = threading.Lock()


class Receiver(BaseHTTPRequestHandler):
    """Takes whatever is posted."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Keep it, and say that it was taken: what OTLP answers then is an empty message."""
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        line = json.dumps({"path": self.path, "headers": headers, "body": base64.b64encode(body).decode()})
        with WRITING, POSTS.open("a") as posts:
            posts.write(f"{line}\n")
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def ended(number: int, frame: object) -> None:
    """End as a collector does that is asked to."""
    raise SystemExit


def main(config: str) -> None:
    """Serve until the process is ended."""
    found = re.search(r"^ +http:\n +endpoint: (\S+):(\d+)$", Path(config).read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{config} has no endpoint of OTLP over HTTP")
    signal.signal(signal.SIGTERM, ended)  # the first process of a container passes it over otherwise
    ThreadingHTTPServer((found[1], int(found[2])), Receiver).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1].removeprefix("--config="))
