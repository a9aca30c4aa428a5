"""What the launcher prints: lines for people, and the outcome of the start for whoever started it in the background.

What can't be written, as into a log on a full disk or a terminal that is gone, is lost: the mesh goes on, and ends.
"""

import contextlib
import json
import os
import sys
import time
from typing import TextIO

from weft_client.command_names import pasteable

from weft_embedded.service_manager import ServiceManager


class LauncherOutput:
    """Lines on a stream, and the same to a waiting parent through a pipe, until the start is over."""

    def __init__(
        self, out: TextIO | None = None, report_fd: int | None = None, manager: ServiceManager | None = None
    ) -> None:
        self._out = out or sys.stdout
        self._report_fd = report_fd
        self._manager = manager or ServiceManager({})
        self._began = time.monotonic()
        self._styled = self._out.isatty() and "NO_COLOR" not in os.environ

    @property
    def read_by_others(self) -> bool:
        """Whether lines go to the journal of a service manager: then nothing secret may stand in one."""
        return self._manager.there

    def line(self, text: str = "") -> None:
        text = pasteable(text)
        _print(text, self._out)
        self._report(line=text)

    def secret(self, text: str) -> None:
        """A line for whoever started this, and for no log: a launcher in the background prints into one."""
        if self._report_fd is None and not self.read_by_others:
            _print(text, self._out)
        self._report(secret=text)

    def part(self, name: str, what: str) -> None:
        """A line about one part, with the seconds since the start."""
        what = pasteable(what)
        mark = f"\033[1m{name:<16}\033[0m" if self._styled else f"{name:<16}"
        _print(f"  {mark} {self._since():>6}  {what}", self._out)
        self._report(line=f"  {name:<16} {self._since():>6}  {what}")

    def started(self) -> None:
        """The mesh is up: the parent need wait no longer, nor a service manager."""
        self._manager.tell(READY="1", STATUS="serves")
        self._report(started=True)
        self._hang_up()

    def stopping(self) -> None:
        """The mesh is going down."""
        self._manager.tell(STOPPING="1", STATUS="stopping")

    def failed(self, sentence: str) -> None:
        """The start failed."""
        self._manager.tell(STATUS=pasteable(sentence).splitlines()[0])
        _print(f"weft: {pasteable(sentence)}", sys.stderr)
        self._report(failed=sentence)
        self._hang_up()

    def _since(self) -> str:
        return f"{time.monotonic() - self._began:.1f} s"

    def _report(self, **what: object) -> None:
        if self._report_fd is None:
            return
        try:
            os.write(self._report_fd, json.dumps(what).encode() + b"\n")
        except OSError:  # the parent is gone; the mesh goes on
            self._hang_up()

    def _hang_up(self) -> None:
        if self._report_fd is not None:
            os.close(self._report_fd)
            self._report_fd = None


def _print(text: str, out: TextIO) -> None:
    with contextlib.suppress(OSError):
        print(text, file=out, flush=True)
