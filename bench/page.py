"""What the first page weighs on the wire. Goal: under 100 kB until it shows the mesh.

    python bench/page.py

A headless Chromium on a new profile opens the gateway's root through a proxy that counts every byte of every
connection, headers included, both ways; then once more, with what it has kept. Counted until models, replicas and
events are shown. Files come in gzip, as to any browser; answers of the API do not, and nothing is encrypted.
"""

import argparse
import os
import socket
import tempfile
import threading
from pathlib import Path
from urllib.parse import urlsplit

from weft_testing import browser
from weft_testing.story import MeshUnderTest, until

GOAL_KB = 100


class Counter:
    """A door on loopback before another one: passes bytes on and counts them."""

    def __init__(self, to: tuple[str, int]) -> None:
        self.down = self.up = self.connections = 0
        self._to = to
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return  # closed
            far = socket.create_connection(self._to, 10)
            far.settimeout(None)
            with self._lock:
                self.connections += 1
            threading.Thread(target=self._pass, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._pass, args=(far, near, True), daemon=True).start()

    def _pass(self, source: socket.socket, to: socket.socket, down: bool) -> None:
        try:
            while data := source.recv(1 << 16):
                with self._lock:
                    if down:
                        self.down += len(data)
                    else:
                        self.up += len(data)
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # one end is gone; the other is told below
        finally:
            if down:
                to.close()
                source.close()

    def close(self) -> None:
        self._listener.close()


def load(chromium: browser.Browser, door: Counter, what: str) -> None:
    """Open the page, wait until it shows the mesh, and print what that took."""
    before = door.down, door.up, door.connections
    chromium.open(door.url)
    chromium.shows("#models .replicas .pill", "ready")
    chromium.shows("#events", "ready tiny #1 on worker-1")
    down, up, connections = door.down - before[0], door.up - before[1], door.connections - before[2]
    requests = 1 + int(chromium.run("return performance.getEntriesByType('resource').length"))
    chromium.open("about:blank")  # its connections for events and states end
    print(
        f"{what:<12}{down / 1e3:>7.1f} kB down {up / 1e3:>6.1f} kB up {requests:>4} requests "
        f"{connections:>3} connections   load average {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def main() -> None:
    """Print a line for each load, and how the first one stands to the goal."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    if (why := browser.missing()) is not None:
        raise SystemExit(why)
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder, MeshUnderTest(Path(folder)) as mesh:
        until("the model answers", mesh.ready_replicas, 60)
        where = urlsplit(mesh.url)
        door = Counter((str(where.hostname), int(where.port or 80)))
        try:
            with browser.Browser() as chromium:
                chromium.look()
                load(chromium, door, "first load")
                first = door.down / 1e3
                load(chromium, door, "once more")
        finally:
            door.close()
    print(f"goal: {GOAL_KB} kB; the first load is {'within' if first <= GOAL_KB else 'above'} it")


if __name__ == "__main__":
    main()
