"""The end of a log file of this machine, and what comes: over its being cut short or set aside."""

import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

_BLOCK = 64 * 1024
_LOOK_S = 0.25
_MAX_LINE = 1 << 20


def last_lines(path: Path, count: int) -> tuple[list[str], int]:
    """The last whole lines of a file, and the place behind them. Raises OSError."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        start, data = end, b""
        while start and data.count(b"\n") <= count:
            start = max(0, start - _BLOCK)
            file.seek(start)
            data = file.read(end - start)
    whole = data.rfind(b"\n") + 1
    lines = data[:whole].split(b"\n")[:-1]
    kept = deque(lines[1:] if start else lines, maxlen=count)
    return [_text(line) for line in kept], start + whole


class LogFile:
    """A log file that is read on from a place, over its being cut short or set aside."""

    def __init__(self, path: Path, place: int) -> None:
        self._path = path
        self._place = place
        self._known: tuple[int, int] | None = None

    def more(self) -> list[str]:
        """The whole lines that were written since, of at most 1 MiB."""
        data = b""
        try:
            with self._path.open("rb") as file:
                found = os.fstat(file.fileno())
                identity = (found.st_dev, found.st_ino)
                if identity != (self._known or identity) or found.st_size < self._place:
                    self._place = 0  # set aside and begun anew, or copied and cut short, as `weft_embedded.logs` does
                self._known = identity
                file.seek(self._place)
                data = file.read(_MAX_LINE)
        except FileNotFoundError:
            pass  # being renewed
        whole = data.rfind(b"\n") + 1 or (len(data) if len(data) == _MAX_LINE else 0)
        self._place += whole
        return [_text(line) for line in data[:whole].removesuffix(b"\n").split(b"\n")] if whole else []


def follow(path: Path, place: int) -> Iterator[str | None]:
    """Lines behind a place as they are written, for ever; None each time that there is nothing new for now."""
    file = LogFile(path, place)
    while True:
        lines = file.more()
        yield from lines
        if not lines:
            yield None
            time.sleep(_LOOK_S)


def _text(line: bytes) -> str:
    return line.decode(errors="replace")
