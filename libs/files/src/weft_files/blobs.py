"""Blobs by content, with an index of their other names, and what was known of each when it was last checked."""

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from blake3 import blake3

from weft_files.disk import sync_folder, write_whole

_BUFFER: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Blob:
    """A file by its content; `size` in bytes. Whoever has it reads it and never writes it."""

    blake3: str
    size: int
    path: Path


class Blobs:
    """A folder of them. A blob is checked by size and by when it was written; by its content, if that is not as it was
    at the last such check."""

    def __init__(self, folder: Path) -> None:
        self._content = folder / "blobs"
        self._marks = folder / "marks"
        self._index = folder / "index"
        for each in (self._content, self._marks, self._index):
            each.mkdir(parents=True, exist_ok=True)

    def place(self, digits: str) -> Path:
        return self._content / digits[:2] / digits

    def get(self, digits: str) -> Blob | None:
        """The blob, checked; one that is not what it should be is removed."""
        path = self.place(digits)
        try:
            opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError:  # a link, or nothing that can be opened
            self.remove(digits)
            return None
        try:
            found = os.fstat(opened)
            if stat.S_ISREG(found.st_mode) and self._mark(digits) == _mark_of(found):
                with contextlib.suppress(OSError):
                    os.utime(self._marks / digits)
                return Blob(digits, found.st_size, path)
            if (
                stat.S_ISREG(found.st_mode)
                and _hash(opened) == digits
                and _mark_of(os.fstat(opened)) == _mark_of(found)
            ):
                self._set_mark(digits, found)
                return Blob(digits, found.st_size, path)
        finally:
            os.close(opened)
        self.remove(digits)
        return None

    def named(self, name: str) -> str | None:
        """The blake3 that is known under another name, such as `sha256:…`."""
        try:
            text = self._entry(name).read_text("ascii")
        except (OSError, UnicodeDecodeError):
            return None
        return text if len(text) == 64 and all(each in "0123456789abcdef" for each in text) else None

    def adopt(self, source: Path, digits: str, names: tuple[str, ...]) -> Blob:
        """Move a synced file of this content, on the same file system, to its place. Raises NoRoom."""
        path = self.place(digits)
        path.parent.mkdir(exist_ok=True)
        found = source.stat()
        self._set_mark(digits, found)
        source.replace(path)
        sync_folder(path.parent)
        self.name(digits, names)
        return Blob(digits, found.st_size, path)

    def name(self, digits: str, names: tuple[str, ...]) -> None:
        """From now on it is known under these as well."""
        for each in names:
            if self.named(each) != digits:
                write_whole(self._entry(each), digits.encode("ascii"))

    def remove(self, digits: str) -> None:
        for path in (self.place(digits), self._marks / digits):
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)

    def all(self) -> Iterator[tuple[Blob, float]]:
        """Each, unchecked, with when it was last used, in seconds of the epoch."""
        for path in self._content.glob("??/*"):
            with contextlib.suppress(OSError):
                yield Blob(path.name, path.lstat().st_size, path), self._used(path)

    def used(self, digits: str) -> float | None:
        """When it was last used, in seconds of the epoch; None: it isn't here."""
        try:
            return self._used(self.place(digits))
        except OSError:
            return None

    def _used(self, path: Path) -> float:
        """Raises OSError."""
        marked, found = self._marks / path.name, path.lstat()
        return marked.stat().st_mtime if marked.exists() else found.st_mtime

    def drop_names(self) -> None:
        """Of blobs that are no more."""
        for path in self._index.glob("*/*"):
            with contextlib.suppress(OSError):
                if not self.place(path.read_text("ascii", errors="replace")).exists():
                    path.unlink()

    def _entry(self, name: str) -> Path:
        """A hash of the name: what it holds reaches no path."""
        digits = blake3(name.encode()).hexdigest()
        return self._index / digits[:2] / digits

    def _mark(self, digits: str) -> dict[str, Any] | None:
        try:
            found = json.loads((self._marks / digits).read_text("ascii"))
        except (OSError, ValueError):
            return None
        return cast(dict[str, Any], found) if isinstance(found, dict) else None

    def _set_mark(self, digits: str, found: os.stat_result) -> None:
        write_whole(self._marks / digits, json.dumps(_mark_of(found)).encode("ascii"))


def _mark_of(found: os.stat_result) -> dict[str, int]:
    return {"size": found.st_size, "written": found.st_mtime_ns, "inode": found.st_ino}


def _hash(opened: int) -> str:
    digest, buffer = blake3(), memoryview(bytearray(_BUFFER))
    while came := os.readv(opened, [buffer]):
        digest.update(buffer[:came])
    return digest.hexdigest()
