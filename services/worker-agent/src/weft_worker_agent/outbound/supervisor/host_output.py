"""What a host says: its last status line, its last lines of stderr, and a bounded log file of it all."""

import contextlib
import json
import os
from collections import deque

TAIL_LINES = 50
MAX_LINE = 4096
"""Bytes of a line of stderr that are kept; the rest is dropped."""
MAX_STATUS = 64 * 1024
KEEP_LOG_BYTES = 8 << 20
KEEP_LOGS = 50


class Lines:
    """Cuts a stream of bytes into lines. A line longer than the limit is cut short, never kept growing."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = b""
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes, without their ends."""
        *whole, rest = (self._rest + data).split(b"\n")
        lines: list[bytes] = []
        for line in whole:
            if self._skipping:
                self._skipping = False
                continue
            lines.append(line[: self._limit])
        if len(rest) > self._limit:
            if not self._skipping:
                lines.append(rest[: self._limit])
            self._skipping = True
            rest = b""
        self._rest = rest
        return lines

    def end(self) -> list[bytes]:
        """What stood after the last line end."""
        rest, self._rest = self._rest, b""
        return [rest] if rest and not self._skipping else []


class HostOutput:
    """What one host writes. Losing the log file (a full disk) costs the file only, never the host."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = -1
        self._written = 0
        self.status: dict[str, object] | None = None
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._open()

    def stdout_line(self, line: bytes) -> bool:
        """Take a line of stdout. True if it was a status: a JSON object."""
        if line.startswith(b"{"):
            with contextlib.suppress(ValueError):
                self.status = json.loads(line)
                self._write(line)
                return True
        self.stderr_line(line)
        return False

    def stderr_line(self, line: bytes) -> None:
        """Take a line of stderr."""
        self.tail.append(line.decode(errors="replace"))
        self._write(line)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, line: bytes) -> None:
        if self._file < 0:
            return
        try:
            self._written += os.write(self._file, line + b"\n")
            if self._written > KEEP_LOG_BYTES:
                self.close()
                os.replace(self._path, self._path + ".1")
                self._open()
        except OSError:
            self.close()

    def _open(self) -> None:
        with contextlib.suppress(OSError):
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            self._written = os.fstat(self._file).st_size


def forget_old_logs(folder: str, keep: int = KEEP_LOGS) -> None:
    """Remove all but the newest log files of hosts."""
    with contextlib.suppress(OSError):
        found = [entry for entry in os.scandir(folder) if entry.name.startswith("host-")]
        found.sort(key=lambda entry: entry.stat().st_mtime, reverse=True)
        for entry in found[keep:]:
            os.unlink(entry.path)
