"""Locks of files, which hold across processes and go with their holder, however it ends."""

import contextlib
import fcntl
import os
from collections.abc import Generator
from pathlib import Path


class FileLock:
    """One holder at a time, in any process. The file goes when the holder lets go of it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held: int | None = None

    def take(self) -> bool:
        """Whether it is ours now; never waits."""
        while True:
            opened = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(opened)
                return False
            except BaseException:
                os.close(opened)
                raise
            if _is_at(opened, self._path):
                self._held = opened
                return True
            os.close(opened)  # its holder let go of it, and removed it, between our two steps

    def release(self) -> None:
        if self._held is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._held)
            self._held = None


@contextlib.contextmanager
def folder_lock(path: Path, *, shared: bool = False) -> Generator[None]:
    """Held for moments only, so it waits. Its file stays."""
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(opened, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _is_at(opened: int, path: Path) -> bool:
    try:
        there = path.lstat()
    except FileNotFoundError:
        return False
    ours = os.fstat(opened)
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
