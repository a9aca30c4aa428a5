"""One state directory, one owner: an flock on a file that also says who holds it.

The lock belongs to the open file, so a child that inherits it keeps it: a server's lock is taken by its
starter and handed to the supervisor and the server, and is free exactly when the last of them has ended.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

_STEP_S = 0.05


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lock: what it is, its process, since when (UTC, ISO 8601), and its URL if it has one."""

    what: str
    pid: int
    since: str
    url: str | None = None

    def __str__(self) -> str:
        at = f", at {self.url}" if self.url else ""
        return f"{self.what} (process {self.pid}, since {self.since}{at})"


class Locked(RuntimeError):
    """Somebody else holds the lock. `holder` is None when the file doesn't tell."""

    def __init__(self, path: Path, holder: Holder | None) -> None:
        super().__init__(
            f"{path.parent} is in use by {holder or 'another process'}; stop that, or use another directory"
        )
        self.path = path
        self.holder = holder


class StateLock:
    """A lock that is held. Use as a context manager, or call `release`."""

    def __init__(self, path: Path, fd: int, holder: Holder) -> None:
        self.path = path
        self.fd = fd
        self.holder = holder
        self._write()

    def record(self, *, pid: int | None = None, url: str | None = None) -> None:
        """Write down a process or a URL that became known only after the lock was taken."""
        self.holder = replace(self.holder, pid=pid or self.holder.pid, url=url or self.holder.url)
        self._write()

    def release(self) -> None:
        """Close this process's hold. Children that inherited the lock still have it."""
        if self.fd >= 0:
            # No LOCK_UN: that would open the lock for the children too. The file stays: removing it would let
            # one process lock the old file and another a new one.
            os.close(self.fd)
            self.fd = -1

    def _write(self) -> None:
        text = json.dumps(asdict(self.holder)).encode() + b"\n"
        with contextlib.suppress(OSError):  # on a full disk it is held all the same, and says nothing
            os.pwrite(self.fd, text, 0)
            os.ftruncate(self.fd, len(text))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def never() -> bool:
    """The default of `given_up`."""
    return False


def acquire(
    path: Path, what: str, *, url: str | None = None, wait_s: float = 0.0, given_up: Callable[[], bool] = never
) -> StateLock:
    """Take the lock file at `path`, in a directory that is made with mode 700 if it is missing.

    Args:
        what: the holder, as another person should read it: "weft up", "a NATS server".
        wait_s: how long to try, in seconds; a server whose launcher was killed needs a moment to end.
        given_up: asked during the wait; True ends it.

    Raises:
        Locked: somebody else has it; the message says who.
        OSError: the file can't be made here.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + wait_s
    try:
        while not _try(fd):
            if time.monotonic() >= deadline or given_up():
                raise Locked(path, holder_of(path))
            time.sleep(_STEP_S)
        return StateLock(path, fd, Holder(what, os.getpid(), datetime.now(UTC).isoformat(timespec="seconds"), url))
    except BaseException:
        os.close(fd)
        raise


def held(path: Path) -> bool:
    """Whether somebody holds a lock file. Looked at by a shared lock, which is let go at once: nothing is written.

    Raises OSError where it can't be read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def holder_of(path: Path) -> Holder | None:
    """Return who last wrote the lock file, held or not; None if it doesn't tell."""
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
        return Holder(**cast("dict[str, Any]", json.loads(path.read_text())))
    return None


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
