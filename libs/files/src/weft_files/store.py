"""One host's blobs, the folders that they are laid out in, and the disk that they may take."""

import contextlib
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from blake3 import blake3

from weft_files.address import Address, plain
from weft_files.blobs import Blob, Blobs
from weft_files.checksum import Checksum
from weft_files.collection import Leaving, choose
from weft_files.coming import Coming
from weft_files.disk import free
from weft_files.layout import Layout, Layouts
from weft_files.locks import FileLock, folder_lock
from weft_files.room import Reservation, Room
from weft_files.wanted import Wanted

GRACE: Final = 3600.0
"""Seconds for which a blob stays after it was found or fetched, so that it can be laid out."""


class Store:
    """A folder on one file system, shared by the processes of a host. Sizes are bytes, ages seconds."""

    def __init__(
        self,
        folder: Path,
        *,
        keep_free: int = 1 << 30,
        partial_age: float = 7 * 86400.0,
        most_partial: int = 256 << 30,
    ) -> None:
        """`partial_age`, `most_partial`: of what broken transfers left to go on with. Raises NoRoom."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._partials = folder / "partial"
        self._partials.mkdir(exist_ok=True)
        self._blobs = Blobs(folder)
        self._layouts = Layouts(folder)
        self._room = Room(folder / "room", keep_free)
        with self._lock():
            self._layouts.clear_halves()
        self._drop_partials(partial_age, most_partial)

    def find(self, wanted: Wanted, addresses: Sequence[Address] = ()) -> Blob | None:
        """The blob, checked; None where it isn't here. One with an etag alone is known by where it came from.

        Blocks, and reads the whole content where the file was touched since it was last checked."""
        for name in self._names(wanted, addresses):
            digits = self._digits(name)
            blob = self._blobs.get(digits) if digits is not None else None
            if blob is not None and blob.size <= wanted.cap and wanted.size in (None, blob.size):
                return blob
        return None

    def lay_out(self, name: str, files: Mapping[str, Blob]) -> Path:
        """A folder with the files under their names, or nothing. Raises BadName, LayoutTaken, NoRoom."""
        with self._lock():
            return self._layouts.lay_out(name, files)

    def layout(self, name: str) -> Layout | None:
        return self._layouts.get(name)

    def laid_out(self, name: str, checksum: Checksum) -> Blob | None:
        """The blob, checked, of a layout's file with this checksum; None where the layout has no such file. Blocks, as
        `find`."""
        layout = self._layouts.get(name)
        known = str(checksum)
        digits = checksum.digits if checksum.algorithm == "blake3" else self._blobs.named(known)
        if layout is None or digits not in {each for each, _ in layout.files.values()}:
            return None
        return self._blobs.get(digits)

    def coming(self, wanted: Wanted) -> Coming | None:
        """What is here of a file that isn't here whole; None where nothing is, or where what comes can't be told from
        another version of it."""
        if wanted.size is None or not wanted.tells_content:
            return None
        try:
            return Coming(self.partial_path(wanted, ()), wanted.size)
        except OSError:
            return None

    def layouts(self) -> list[Layout]:
        """By name."""
        return sorted(self._layouts.all(), key=lambda each: each.name)

    def layout_folder(self, name: str) -> Path:
        """Where it is, or would be."""
        return self.folder / "layouts" / name

    def pin(self, name: str) -> None:
        """No collection removes it. Raises BadName."""
        self._layouts.pin(name, pinned=True)

    def unpin(self, name: str) -> None:
        self._layouts.pin(name, pinned=False)

    def remove(self, name: str) -> None:
        """The layout, and the blobs that no other layout names, at once. Raises BadName."""
        with self._lock():
            layout = self._layouts.get(name)
            self._layouts.remove(name)
            if layout is not None:
                named = {digits for each in self._layouts.all() for digits, _ in each.files.values()}
                for digits in {digits for digits, _ in layout.files.values()} - named:
                    self._blobs.remove(digits)
                self._blobs.drop_names()

    def drop(self, digits: str) -> None:
        """Have a blob go that no layout names; who reads it has it open."""
        with self._lock():
            if not any(digits in (each for each, _ in layout.files.values()) for layout in self._layouts.all()):
                self._blobs.remove(digits)
                self._blobs.drop_names()

    def reserve(self, size: int) -> AbstractContextManager[Reservation]:
        """Room for a payload and 5 % while `keep_free` stays free. Raises NoRoom."""
        return self._room.reserve(size)

    def free(self) -> int:
        """Bytes that a transfer could still reserve, margin included."""
        return max(0, free(self.folder) - self._room.reserved() - self._room.keep_free)

    def leaving(self, most: int, keep: Collection[str], *, grace: float = GRACE) -> Leaving:
        """What `collect` would remove."""
        layouts, blobs = list(self._layouts.all()), list(self._blobs.all())
        return choose(layouts, blobs, most, frozenset(keep), time.time() - grace)

    def collect(
        self, most: int, keep: Collection[str], *, only: Collection[str] | None = None, grace: float = GRACE
    ) -> list[str]:
        """Remove layouts and blobs, least recently used first, until blobs have at most `most` bytes. `keep`: layouts
        that stay, as pinned ones do; `only`: no others go. The names of the layouts that went."""
        with self._lock():
            if only is not None:
                keep = {*keep, *(each.name for each in self._layouts.all() if each.name not in only)}
            leaving = self.leaving(most, keep, grace=grace)
            for name in leaving.layouts:
                self._layouts.remove(name)
            for digits in leaving.blobs:
                self._blobs.remove(digits)
            if leaving.blobs:
                self._blobs.drop_names()
        return list(leaving.layouts)

    def partial_path(self, wanted: Wanted, addresses: Sequence[Address]) -> Path:
        """Where this file lies while it comes."""
        known = str(wanted.checksum) if wanted.tells_content else f"{wanted.checksum} {self._places(addresses)}"
        return self._partials / f"{blake3(f'{known} {wanted.size}'.encode()).hexdigest()}.part"

    def forget(self, wanted: Wanted, addresses: Sequence[Address], *, grace: float = GRACE) -> bool:
        """Have go what came of a file that nobody here wants any more: its half at once, unless somebody brings it; the
        whole once nobody used it for so long, as another process may be about to lay it out, and unless a layout names
        it. False while there is something left that is to go. It is no use of the file."""
        path = self.partial_path(wanted, addresses)
        if path.exists() and not _drop(path, self.transfer_lock(path)):
            return False
        named = (self._digits(name) for name in self._names(wanted, addresses))
        before = time.time() - grace
        with self._lock():
            laid_out = {digits for layout in self._layouts.all() for digits, _ in layout.files.values()}
            unused = {digits: self._blobs.used(digits) for digits in named if digits is not None}
            left = {digits: used for digits, used in unused.items() if used is not None and digits not in laid_out}
            old = [digits for digits, used in left.items() if used < before]
            for digits in old:
                self._blobs.remove(digits)
            if old:
                self._blobs.drop_names()
        return len(old) == len(left)

    def transfer_lock(self, partial: Path) -> FileLock:
        return FileLock(partial.with_suffix(".lock"))

    def adopt(self, source: Path, digits: str, wanted: Wanted, addresses: Sequence[Address]) -> Blob:
        """A synced, verified file becomes a blob. Raises NoRoom."""
        with self._lock():
            names = tuple(each for each in self._names(wanted, addresses) if not each.startswith("blake3:"))
            return self._blobs.adopt(source, digits, names)

    def _names(self, wanted: Wanted, addresses: Sequence[Address]) -> tuple[str, ...]:
        """Those that it is looked up by."""
        checksum = wanted.checksum
        if checksum is None:
            return ()
        if checksum.algorithm == "etag":
            return tuple(f"{checksum} {wanted.size} {plain(each.url)} {each.said}" for each in addresses)
        return (str(checksum),)

    def _digits(self, name: str) -> str | None:
        """The blake3 of what is known by a name."""
        return name.removeprefix("blake3:") if name.startswith("blake3:") else self._blobs.named(name)

    def _places(self, addresses: Sequence[Address]) -> str:
        return "\n".join(f"{each.url.partition('?')[0]} {each.said}" for each in addresses)

    def _lock(self) -> AbstractContextManager[None]:
        return folder_lock(self.folder / ".lock")

    def _drop_partials(self, age: float, most: int) -> None:
        """Those that are too old, then the oldest of too many; none that a transfer holds."""
        found: list[tuple[float, int, Path]] = []
        for path in self._partials.glob("*.part"):
            with contextlib.suppress(OSError):
                about = path.lstat()
                found.append((about.st_mtime, about.st_blocks * 512, path))
        total, oldest = sum(size for _, size, _ in found), time.time() - age
        for written, size, path in sorted(found):
            if (written < oldest or total > most) and _drop(path, self.transfer_lock(path)):
                total -= size
        for path in (*self._partials.glob("*.journal"), *self._partials.glob("*.lock")):
            if not path.with_suffix(".part").exists():
                lock = self.transfer_lock(path)
                for _ in _held(lock):
                    path.with_suffix(".journal").unlink(missing_ok=True)


def _drop(path: Path, lock: FileLock) -> bool:
    """A partial file; False where a transfer holds it."""
    for _ in _held(lock):
        path.with_suffix(".journal").unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        return True
    return False


def _held(lock: FileLock) -> Iterator[None]:
    """Once, while it is ours; not at all where somebody else has it."""
    if lock.take():
        try:
            yield
        finally:
            lock.release()
