"""The parts' log files: appended to by the parts themselves, kept small by the launcher."""

import contextlib
import os
import shutil
from pathlib import Path

KEEP_BYTES = 8 << 20
"""Above this a log is set aside as `<name>.log.1`, which replaces the one set aside before."""
_TAIL_BYTES = 4000


def rotate(log: Path) -> None:
    """Set a large log aside. Its writer may be at it: it appends, and so goes on in the emptied file."""
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size > KEEP_BYTES:
            shutil.copyfile(log, log.with_name(log.name + ".1"))
            os.truncate(log, 0)


def open_for_append(log: Path) -> int:
    """Open a log for a part to write to; the caller closes it."""
    with contextlib.suppress(OSError):
        rotate(log)
    return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def tail(log: Path, lines: int = 12) -> str:
    """The last lines, for an error's message: ':' and the lines, or nothing."""
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        last = file.read().decode(errors="replace").splitlines()[-lines:]
        if last:
            return "".join([f"; {log} ends:", *(f"\n  {line}" for line in last)])
    return ""
