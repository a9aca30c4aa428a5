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


def follow(path: Path, place: int) -> Iterator[str | None]:
    """Lines behind a place as they are written, for ever; None each time that there is nothing new for now."""
    known: tuple[int, int] | None = None
    while True:
        data = b""
        try:
            with path.open("rb") as file:
                found = os.fstat(file.fileno())
                if (found.st_dev, found.st_ino) != (known or (found.st_dev, found.st_ino)) or found.st_size < place:
                    place = 0  # set aside and begun anew, or copied and cut short, as `weft_embedded.logs` does
                known = (found.st_dev, found.st_ino)
                file.seek(place)
                data = file.read(_MAX_LINE)
        except FileNotFoundError:
            pass  # being renewed
        whole = data.rfind(b"\n") + 1 or (len(data) if len(data) == _MAX_LINE else 0)
        place += whole
        for line in data[:whole].removesuffix(b"\n").split(b"\n") if whole else ():
            yield _text(line)
        if not whole:
            yield None
            time.sleep(_LOOK_S)


def _text(line: bytes) -> str:
    return line.decode(errors="replace")
