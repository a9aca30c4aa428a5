"""A blob that comes otherwise than from an address: what is written is counted, hashed, and kept if it is right."""

import os
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from weft_files.blobs import Blob
from weft_files.disk import naming_a_full_disk
from weft_files.faults import Mismatch
from weft_files.hashing import Hashing
from weft_files.head import exceeds
from weft_files.store import Store
from weft_files.wanted import Wanted


class Incoming:
    """One try, as a context manager: what was not kept at its end is gone. Its methods block."""

    def __init__(self, store: Store, wanted: Wanted) -> None:
        if not wanted.tells_content:
            raise ValueError(f"{wanted.name} has no checksum of its content: nothing else tells what comes")
        self._store = store
        self._wanted = wanted
        self._most = wanted.cap if wanted.size is None else min(wanted.size, wanted.cap)
        place = store.partial_path(wanted, ())
        self._path: Path = place.with_name(f"in-{os.getpid()}-{os.urandom(8).hex()}.part")
        self._hashing = Hashing(wanted.size or 0, wanted.checksum)
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            opening.enter_context(self._store.reserve(self._wanted.size or 0))
            opening.callback(lambda: self._path.unlink(missing_ok=True))
            with naming_a_full_disk(self._path.parent):
                self._file = opening.enter_context(self._path.open("xb"))
            self._open = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def write(self, data: bytes) -> None:
        """Raises Mismatch for more than is wanted, NoRoom."""
        if self._hashing.at + len(data) > self._most:
            raise exceeds(self._wanted, self._most)
        self._hashing.update(memoryview(data))
        with naming_a_full_disk(self._path.parent):
            self._file.write(data)

    def finish(self) -> Blob:
        """All was written. Raises Mismatch, NoRoom."""
        if self._wanted.size is not None and self._hashing.at < self._wanted.size:
            raise Mismatch(f"is short: {self._hashing.at} bytes came, {self._wanted.size} are wanted")
        digits = self._hashing.finish()
        with naming_a_full_disk(self._path.parent):
            self._file.flush()
            os.fsync(self._file.fileno())
        return self._store.adopt(self._path, digits, self._wanted, ())


Nearer = Callable[[Callable[[bytes], None]], Awaitable[None]]
"""Writes a file's content by the callable that it is given, in order. Raises Fault with why it can't, as what follows
the name of where it looks, and lets through what the callable raises."""
