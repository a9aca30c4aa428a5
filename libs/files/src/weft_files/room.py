"""Disk that transfers on one store have spoken for, in whichever process they run."""

import contextlib
import fcntl
import os
from collections.abc import Generator
from pathlib import Path
from typing import Final

from weft_files.disk import free, naming_a_full_disk
from weft_files.faults import NoRoom
from weft_files.locks import folder_lock

MARGIN: Final = 20
"""One part in so many is taken besides the payload."""
_DIGITS: Final = 20


class Reservation:
    """Of one transfer: how much it will still write. A killed holder's counts no more."""

    def __init__(self, room: "Room", held: int) -> None:
        self._room = room
        self._held = held
        self._filled = 0
        self._size = 0

    def need(self, size: int) -> None:
        """The payload has `size` bytes in all. Raises NoRoom."""
        if size > self._size:
            self._room.take(self._held, max(0, size + size // MARGIN - self._filled), size)
            self._size = size

    def filled(self, size: int) -> None:
        """So many bytes lie on the disk, and count as free no more."""
        self._filled = size
        _write(self._held, max(0, self._size + self._size // MARGIN - size))


class Room:
    """A folder with a file for each reservation, which its holder keeps locked. `keep_free` bytes stay free."""

    def __init__(self, folder: Path, keep_free: int) -> None:
        self._folder = folder
        self.keep_free = keep_free
        folder.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def reserve(self, size: int) -> Generator[Reservation]:
        """Payload and margin. Raises NoRoom."""
        path = self._folder / f"{os.getpid()}-{os.urandom(8).hex()}"
        with naming_a_full_disk(self._folder):
            held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            reservation = Reservation(self, held)
            reservation.need(size)
            yield reservation
        finally:
            path.unlink(missing_ok=True)
            os.close(held)

    def reserved(self) -> int:
        """Bytes that running transfers will still write."""
        return sum(_outstanding(path) for path in self._folder.iterdir() if path.name != ".lock")

    def take(self, held: int, more: int, payload: int) -> None:
        with folder_lock(self._folder / ".lock"):
            _write(held, 0)
            there, others = free(self._folder), self.reserved()
            if there - others - more < self.keep_free:
                raise NoRoom(
                    f"{payload} bytes need {more} more on the disk under {self._folder.parent}, where {there} are free,"
                    f" other transfers have reserved {others} and {self.keep_free} stay free"
                )
            with naming_a_full_disk(self._folder):
                _write(held, more)


def _write(held: int, value: int) -> None:
    os.pwrite(held, str(value).zfill(_DIGITS).encode(), 0)


def _outstanding(path: Path) -> int:
    try:
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return 0
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            text = os.pread(opened, _DIGITS, 0)
            return int(text) if text.isdigit() else 0
        path.unlink(missing_ok=True)  # its holder is gone
        return 0
    finally:
        os.close(opened)
