"""Folders in which an engine finds blobs under the names that it wants."""

import contextlib
import fcntl
import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from weft_files.blobs import Blob
from weft_files.disk import naming_a_full_disk, sync_folder, write_whole
from weft_files.names import BadName, check_file_name, check_layout_name

_FICLONE: Final = 0x40049409
"""Of linux/fs.h: share the extents of another file."""


class LayoutTaken(Exception):
    """Another set of files lies under this name; whoever laid it out may still read it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """`files`: each name with its blob's blake3 and size; `used`: when last laid out, in seconds of the epoch."""

    name: str
    files: Mapping[str, tuple[str, int]]
    used: float
    pinned: bool


class Layouts:
    """`layouts/NAME/` with the files, `manifests/NAME` with what lies there, `pins/NAME` where it must stay.

    A folder without a manifest is not ours, and is left alone."""

    def __init__(self, folder: Path) -> None:
        self._folders, self._manifests, self._pins = (folder / each for each in ("layouts", "manifests", "pins"))
        for each in (self._folders, self._manifests, self._pins):
            each.mkdir(parents=True, exist_ok=True)

    def lay_out(self, name: str, files: Mapping[str, Blob]) -> Path:
        """Raises BadName, LayoutTaken and NoRoom."""
        check_layout_name(name)
        _check(files)
        there = self._folders / name
        wanted = {each: (blob.blake3, blob.size) for each, blob in files.items()}
        if there.is_symlink() or there.exists():
            known = self.get(name)
            if known is None or known.files != wanted:
                raise LayoutTaken(f"the layout {name!r} holds other files: want another name, or to remove it first")
            if all(_is(there / each, blob) for each, blob in files.items()):
                os.utime(self._manifests / name)
                return there
            self.remove(name)
        aside = self._folders / f".{name}.{os.getpid()}-{os.urandom(4).hex()}"
        try:
            with naming_a_full_disk(self._folders):
                aside.mkdir()
                for each, blob in files.items():
                    (aside / each).parent.mkdir(parents=True, exist_ok=True)
                    _link(blob.path, aside / each)
            for parent in sorted({(aside / each).parent for each in files} | {aside}, reverse=True):
                sync_folder(parent)
            write_whole(self._manifests / name, json.dumps({"files": wanted}).encode())
            aside.rename(there)
            sync_folder(self._folders)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        return there

    def get(self, name: str) -> Layout | None:
        check_layout_name(name)
        path = self._manifests / name
        try:
            found: Any = json.loads(path.read_bytes())
            entries = cast(dict[str, list[Any]], found["files"])
            files = {each: (str(entry[0]), int(entry[1])) for each, entry in entries.items()}
            return Layout(name, files, path.stat().st_mtime, (self._pins / name).exists())
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
            return None

    def all(self) -> Iterator[Layout]:
        for path in self._manifests.iterdir():
            with contextlib.suppress(BadName):
                if (found := self.get(path.name)) is not None:
                    yield found

    def pin(self, name: str, *, pinned: bool) -> None:
        """Raises BadName."""
        check_layout_name(name)
        if pinned:
            write_whole(self._pins / name, b"")
        else:
            (self._pins / name).unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        """At once for whoever looks; what is open stays readable. Raises BadName."""
        check_layout_name(name)
        aside = self._folders / f".{name}.{os.getpid()}-{os.urandom(4).hex()}"
        with contextlib.suppress(FileNotFoundError):
            (self._folders / name).rename(aside)
        (self._manifests / name).unlink(missing_ok=True)
        shutil.rmtree(aside, ignore_errors=True)

    def clear_halves(self) -> None:
        """Remove what killed processes left: nobody else lays out now."""
        for path in self._folders.glob(".*"):
            shutil.rmtree(path, ignore_errors=True)
        for path in self._manifests.iterdir():
            if path.name.startswith(".") or not (self._folders / path.name).exists():
                path.unlink(missing_ok=True)


def _check(files: Mapping[str, Blob]) -> None:
    parts: set[str] = set()
    for name, blob in files.items():
        check_file_name(name)
        parts |= {str(parent) for parent in Path(name).parents}
        if not stat.S_ISREG(blob.path.lstat().st_mode):
            raise BadName(f"the blob of {name!r} is no plain file")
    if both := parts & files.keys():
        raise BadName(f"{min(both)!r} is a file and a folder of other files")


def _is(path: Path, blob: Blob) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size == blob.size


def _link(source: Path, target: Path) -> None:
    """A hard link; else shared extents; else a copy."""
    with contextlib.suppress(OSError):
        os.link(source, target, follow_symlinks=False)
        return
    with source.open("rb") as read, target.open("xb") as written:
        try:
            fcntl.ioctl(written.fileno(), _FICLONE, read.fileno())
        except OSError:
            shutil.copyfileobj(read, written, 1 << 20)
        written.flush()
        os.fchmod(written.fileno(), 0o444)
        os.fsync(written.fileno())
