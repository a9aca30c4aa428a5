"""What this node gives other nodes of a model's files: what lies in its store, and what is on its way there."""

import asyncio
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from weft_contracts.digest import files_digest
from weft_contracts.facts.node import FilesWanted
from weft_contracts.facts.source import SourceFile
from weft_contracts.facts.values import ModelSpec
from weft_files.blobs import Blob
from weft_files.checksum import BadChecksum, Checksum
from weft_files.coming import Coming
from weft_files.store import Store
from weft_files.wanted import Wanted

THREADS: Final = 4
"""That read for other nodes: a slow disk holds up nothing else."""
T = TypeVar("T")


class OfferedFile:
    """One file as far as it is here. `ahead` and `read` block for moments."""

    def __init__(self, size: int, blob: Blob | None, coming: Coming | None) -> None:
        """Raises OSError where the blob is gone."""
        self.size = size
        self.whole = blob is not None
        self._coming = coming
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(blob.path, flags) if blob is not None else None

    def ahead(self, at: int) -> int:
        """Where what is here from `at` on ends."""
        if self.whole:
            return self.size
        return self._coming.ahead(at) if self._coming is not None else at

    def read(self, at: int, most: int) -> bytes:
        """Less than is wanted where the file was begun anew."""
        if self._file is not None:
            return os.pread(self._file, most, at)
        return self._coming.read(at, most) if self._coming is not None else b""

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self._coming is not None:
            self._coming.close()
            self._coming = None


class OfferedFiles:
    """Files by their model's digest and their own checksum, never by a path."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="offer")
        self.expected: Callable[[], Iterable[ModelSpec | FilesWanted]] = lambda: ()
        """What this node was given to run, or is to have ahead of need: the files are here or come."""

    async def open(self, files: str, checksum: Checksum) -> OfferedFile | None:
        """The file, to be closed; None where it isn't here and isn't expected."""
        expected = tuple(self.expected())
        return await self.threaded(lambda: self._open(files, checksum, expected))

    async def threaded(self, work: Callable[[], T]) -> T:
        """Have work done in the threads that read for other nodes."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _open(
        self, files: str, checksum: Checksum, expected: tuple[ModelSpec | FilesWanted, ...]
    ) -> OfferedFile | None:
        try:
            if (blob := self._store.laid_out(files, checksum)) is not None:
                return OfferedFile(blob.size, blob, None)
            listed = next(filter(None, (_listed(each, files) for each in expected)), ())
            file = next((each for each in listed if _is(each, checksum)), None)
            if file is None:
                return None
            wanted = Wanted(file.name, file.size, checksum, file.size)
            if (blob := self._store.find(wanted)) is not None:
                return OfferedFile(blob.size, blob, None)
            return OfferedFile(file.size, None, self._store.coming(wanted))
        except OSError:  # it went between two looks
            return None


def _listed(expected: ModelSpec | FilesWanted, files: str) -> tuple[SourceFile, ...]:
    """The files of this digest; none where it is another's."""
    if isinstance(expected, FilesWanted):
        return expected.listed if expected.files == files else ()
    return expected.files if expected.files and files_digest(expected) == files else ()


def _is(file: SourceFile, checksum: Checksum) -> bool:
    return file.checksum == str(checksum)


def content_sum(text: str) -> Checksum | None:
    """The checksum that a text names; None where it is none, or tells no content."""
    try:
        found = Checksum.parse(text)
    except BadChecksum:
        return None
    return found if found.tells_content else None
