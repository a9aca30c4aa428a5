"""The supervisor's log files of engine hosts, read from their end: bounded, and over the file's renewal."""

import os
from pathlib import Path

from weft_contracts.ids import is_id

MAX_LINES = 10_000
"""Lines of one tail."""
MAX_BYTES = 1 << 20
"""Bytes of one tail, and of one piece of what follows."""
_BLOCK = 64 * 1024
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class NoLog(Exception):
    """No run of such a replica has a log here."""


class HostLog:
    """One replica's log, opened anew at each read: the supervisor may renew it at any time.

    Lines come whole: what stands behind the last line end is left for the next read.
    """

    def __init__(self, folder: Path, replica: str) -> None:
        """Raises NoLog. The name is an id and nothing else, so it can't lead out of the folder."""
        if not is_id(replica):
            raise NoLog
        self._path = folder / f"host-{replica}.log"
        self._place = 0
        self._file: tuple[int, int] | None = None
        os.close(self._open())

    def tail(self, lines: int) -> bytes:
        """The last whole lines; `more` goes on behind them. Raises NoLog."""
        fd = self._open()
        try:
            self._file = _identity(fd)
            text, self._place = _last_lines(fd, os.fstat(fd).st_size, min(lines, MAX_LINES))
            return text
        finally:
            os.close(fd)

    def more(self) -> bytes:
        """The whole lines that came since; empty if none did. Raises NoLog."""
        fd = self._unread()
        try:
            data = os.pread(fd, MAX_BYTES, self._place)
        finally:
            os.close(fd)
        end = data.rfind(b"\n") + 1
        if not end and len(data) == MAX_BYTES:
            end = len(data)  # a line that fills the whole piece: its end is not waited for
        self._place += end
        return data[:end]

    def _unread(self) -> int:
        """The file to go on in: one that was set aside meanwhile is read to its end first."""
        fd = self._open()
        if self._is_known(fd):
            return fd
        try:
            old = os.open(f"{self._path}.1", _FLAGS)
        except OSError:
            old = -1
        if old >= 0 and self._is_known(old) and os.fstat(old).st_size > self._place:
            os.close(fd)
            return old
        if old >= 0:
            os.close(old)
        self._file, self._place = _identity(fd), 0
        return fd

    def _is_known(self, fd: int) -> bool:
        return self._file == _identity(fd) and os.fstat(fd).st_size >= self._place

    def _open(self) -> int:
        try:
            return os.open(self._path, _FLAGS)
        except OSError:
            raise NoLog from None


def _identity(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


def _last_lines(fd: int, size: int, lines: int) -> tuple[bytes, int]:
    """The last whole lines of a file, at most MAX_BYTES of them, and where they end."""
    start, data = size, b""
    while start and len(data) < MAX_BYTES and data.count(b"\n") <= lines:
        step = min(_BLOCK, start)
        start -= step
        data = os.pread(fd, step, start) + data
    end = data.rfind(b"\n") + 1
    whole = data[:end]
    if start:  # the first line may be cut
        whole = whole[whole.find(b"\n") + 1 :]
    supervised = whole.split(b"\n")[:-1][-lines:] if lines else []
    return b"".join(line + b"\n" for line in supervised), start + end
