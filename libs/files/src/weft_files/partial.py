"""One file as far as it came, with a journal of the pieces that are there, so that a later process goes on with it."""

import json
import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weft_files.disk import naming_a_full_disk
from weft_files.json_line import object_of

_FORM: Final = 1
_MOST_JOURNAL: Final = 16 << 20
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Version:
    """Which version of which address's file pieces belong to."""

    address: str
    """A hash of it."""
    etag: str
    """A strong one, in its quotes; empty: none, and so nothing can be told apart."""


class Partial:
    """Of `size` bytes in pieces of `piece`; with an unknown size it is one stream that can't be resumed.

    Pieces that are there are not written again until all begins anew: what was hashed stays what lies in the file."""

    def __init__(self, path: Path, size: int | None, piece: int, *, tells_content: bool) -> None:
        self.path = path
        self.size = self._declared = size
        self.version: Version | None = None
        self.contributors: set[str] = set()
        """Addresses, and `before` for pieces of an earlier process."""
        self._journal = path.with_suffix(".journal")
        self._piece = piece
        self._count = 0 if size is None else -(-size // piece)
        self._have = bytearray(self._count)
        self._claimed = bytearray(self._count)
        self.tells_content = tells_content
        self._lock = threading.Lock()
        self._noted: int | None = None
        self.generation = 0
        """Counts how often all began anew."""
        self.came = 0
        """Bytes of pieces that are there, and of the one stream behind them."""
        with naming_a_full_disk(path.parent):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            self._recall()
        except BaseException:
            self.close()
            raise

    @property
    def pieces(self) -> int:
        """How many are there."""
        return sum(self._have)

    @property
    def missing(self) -> int:
        """Bytes."""
        return 0 if self.size is None else self.size - self.came

    def write(self, at: int, data: memoryview) -> None:
        """Raises NoRoom."""
        with naming_a_full_disk(self.path.parent):
            while data:
                written = os.pwrite(self._file, data, at)
                at, data = at + written, data[written:]

    def room_at(self, at: int) -> int:
        """Bytes from `at` to the end of its piece."""
        return self._piece - at % self._piece

    def read_into(self, at: int, buffer: memoryview) -> int:
        return os.preadv(self._file, [buffer], at)

    def has(self, at: int) -> bool:
        """Whether the piece that holds this byte is there."""
        return self.size is not None and at < self.size and bool(self._have[at // self._piece])

    def ahead(self, at: int) -> int:
        """Where the run of pieces that are there, from `at` on, ends."""
        size = self.size or 0
        while at < size and self._have[at // self._piece]:
            at = min(size, (at // self._piece + 1) * self._piece)
        return at

    def claim(self, most: int | None) -> tuple[int, int] | None:
        """The next run of pieces that nobody has or fetches, of at most `most` bytes: from, and up to."""
        assert self.size is not None
        with self._lock:
            first = next((i for i in range(self._count) if not self._have[i] and not self._claimed[i]), None)
            if first is None:
                return None
            last = first
            while (
                last + 1 < self._count
                and not self._have[last + 1]
                and not self._claimed[last + 1]
                and (most is None or (last + 2 - first) * self._piece <= most)
            ):
                last += 1
            self._claimed[first : last + 1] = b"\1" * (last + 1 - first)
            return first * self._piece, min(self.size, (last + 1) * self._piece)

    def release(self, span: tuple[int, int]) -> None:
        """What of a claimed run isn't there may be claimed again."""
        with self._lock:
            for index in range(span[0] // self._piece, -(-span[1] // self._piece)):
                self._claimed[index] = 0

    def note(self, end: int, address: str) -> None:
        """The piece that ends here lies in the file, and came from this address. Raises NoRoom."""
        index = (end - 1) // self._piece
        with self._lock:
            if not self._have[index]:
                self.contributors.add(address)
                self._append(f"{index}\n")
                self._have[index] = 1
                self.came += self._length(index)

    def begin(self, version: Version) -> None:
        """What comes from now on is of this version."""
        with self._lock:
            if version != self.version:
                self.version = version
                if self._noted is not None:
                    self._append(json.dumps({"address": version.address, "etag": version.etag}) + "\n")

    def settle(self, size: int) -> None:
        """A stream of unknown size has ended, and is whole with so many bytes."""
        os.ftruncate(self._file, size)
        self.size, self.came = size, size
        self._count = -(-size // self._piece)
        self._have = bytearray(b"\1" * self._count)

    def clear(self) -> None:
        """Nothing is there any more."""
        with self._lock:
            self.generation += 1
            self.size = self._declared
            self._count = 0 if self.size is None else -(-self.size // self._piece)
            self._have = bytearray(self._count)
            self._claimed = bytearray(self._count)
            self.contributors.clear()
            self.version = None
            self.came = 0
            self._drop_journal()
            os.ftruncate(self._file, 0)

    def sync(self) -> None:
        """The whole file is on the disk, and read-only. Raises NoRoom."""
        with naming_a_full_disk(self.path.parent):
            os.fchmod(self._file, 0o444)
            os.fsync(self._file)

    def remove(self) -> None:
        self._drop_journal()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        for each in (self._file, self._noted):
            if each is not None:
                os.close(each)
        self._noted = None

    def _length(self, index: int) -> int:
        assert self.size is not None
        return min(self._piece, self.size - index * self._piece)

    def _recall(self) -> None:
        """What an earlier process left, where it can be trusted: of the same file, in pieces of the same size, and
        either found out by the checksum when wrong, or written since the machine started."""
        lines: list[str] = []
        with suppress(OSError, UnicodeDecodeError):
            if self._journal.stat().st_size <= _MOST_JOURNAL:
                lines = self._journal.read_text("ascii").split("\n")[:-1]
        begun = object_of(lines[0]) if lines else None
        size, piece, boot = self.size, self._piece, _boot()
        same = begun == {"form": _FORM, "size": size, "piece": piece, "boot": boot}
        if begun is not None and self.tells_content:
            same = {**begun, "boot": boot} == {"form": _FORM, "size": size, "piece": piece, "boot": boot}
        there = os.fstat(self._file).st_size
        if not same or size is None:
            self._drop_journal()
            os.ftruncate(self._file, 0)
            return
        for line in lines[1:]:
            if line.isdigit():
                index = int(line)
                if index < self._count and not self._have[index] and index * piece + self._length(index) <= there:
                    self._have[index] = 1
                    self.came += self._length(index)
            elif found := object_of(line):
                self.version = Version(str(found.get("address", "")), str(found.get("etag", "")))
        if self.came:
            self.contributors.add("before")

    def _append(self, text: str) -> None:
        with naming_a_full_disk(self.path.parent):
            if self._noted is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
                self._noted = os.open(self._journal, flags, 0o600)
                if os.fstat(self._noted).st_size == 0:
                    begun = {"form": _FORM, "size": self.size, "piece": self._piece, "boot": _boot()}
                    head = json.dumps(begun) + "\n"
                    if self.version is not None:
                        head += json.dumps({"address": self.version.address, "etag": self.version.etag}) + "\n"
                    text = head + text
            os.write(self._noted, text.encode("ascii"))

    def _drop_journal(self) -> None:
        if self._noted is not None:
            os.close(self._noted)
            self._noted = None
        self._journal.unlink(missing_ok=True)


def _boot() -> str:
    """Changes when the machine starts, and what it had not written to the disk is gone."""
    try:
        return _BOOT.read_text("ascii").strip()
    except OSError:
        return ""
