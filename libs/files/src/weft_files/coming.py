"""A file that is still on its way into a store, as far as its pieces are there: for whoever hands it on meanwhile."""

import os
from pathlib import Path
from typing import Final

from weft_files.json_line import object_of

_MOST_JOURNAL: Final = 16 << 20


class Coming:
    """Reads what a transfer writes, in this process or another, and changes nothing. What is there is not verified: a
    whole is. Everything here blocks for moments."""

    def __init__(self, path: Path, size: int) -> None:
        """`path` is the partial file's. Raises OSError where there is none."""
        self._journal = path.with_suffix(".journal")
        self._size = size
        self._seen: tuple[int, int, int] | None = None
        self._piece = 0
        self._have: frozenset[int] = frozenset()
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)

    def ahead(self, at: int) -> int:
        """Where the run of bytes that are there, from `at` on, ends; `at` where there are none."""
        self._look()
        while at < self._size and self._piece and at // self._piece in self._have:
            at = min(self._size, (at // self._piece + 1) * self._piece)
        return at

    def read(self, at: int, most: int) -> bytes:
        """Less than is wanted where the transfer began anew."""
        return os.pread(self._file, most, at)

    def close(self) -> None:
        os.close(self._file)

    def _look(self) -> None:
        try:
            found = self._journal.stat()
            seen = found.st_ino, found.st_size, found.st_mtime_ns
            if seen == self._seen:
                return
            lines = self._journal.read_text("ascii").split("\n")[:-1] if found.st_size <= _MOST_JOURNAL else []
        except (OSError, UnicodeDecodeError):
            self._seen, self._have = None, frozenset()
            return
        begun = object_of(lines[0]) if lines else None
        self._seen, self._have = seen, frozenset()
        if begun is not None and begun.get("size") == self._size and isinstance(piece := begun.get("piece"), int):
            self._piece = piece
            self._have = frozenset(int(line) for line in lines[1:] if line.isdigit())
