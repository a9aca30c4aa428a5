"""One file that somebody sends, in order from its front: kept as far as it came, verified at its end."""

import contextlib
import threading
from typing import Final

from weft_files.blobs import Blob
from weft_files.bounds import Bounds
from weft_files.faults import Mismatch, NoRoom
from weft_files.following import Following
from weft_files.partial import Partial
from weft_files.store import Store
from weft_files.wanted import Wanted

_SENDER: Final = "sent"


class Held(Exception):
    """Somebody else brings this file here now."""


class Misplaced(Exception):
    """What was to be taken does not begin where the file ends so far, at `there`."""

    def __init__(self, there: int) -> None:
        super().__init__(f"{there} bytes are there")
        self.there = there


class Ended(Exception):
    """The file is not received any more: it is whole, or nobody waits for it."""


class Receiving:
    """Its size and hash are known before. Room is reserved at once, and stays so until it ends.

    Methods block; they may be called from any thread, and wait for one another.
    """

    def __init__(self, store: Store, wanted: Wanted, bounds: Bounds | None = None) -> None:
        """Goes on from the pieces that are there, and hashes them anew. Raises Held and NoRoom."""
        if wanted.size is None or not wanted.tells_content:
            raise ValueError(f"{wanted.name} can't be received: its size and its hash must be known")
        bounds = bounds or Bounds()
        self._store, self._wanted, self._size, self._piece = store, wanted, wanted.size, bounds.piece
        self._buffer = memoryview(bytearray(min(bounds.buffer, bounds.piece)))
        self._steps = threading.Lock()
        self._at = 0
        self._ended = False
        self._held = contextlib.ExitStack()
        path = store.partial_path(wanted, ())
        lock = store.transfer_lock(path)
        if not lock.take():
            raise Held(f"another process brings {wanted.name} here")
        self._held.callback(lock.release)
        try:
            self._partial = Partial(path, wanted.size, bounds.piece, tells_content=True)
            self._held.callback(self._partial.close)
            self._following = Following(self._partial, wanted.checksum)
            self._room = self._held.enter_context(store.reserve(0))
            self._room.filled(self._partial.came)
            self._room.need(wanted.size)
            self._at = self._partial.ahead(0)
            self._following.catch_up(self._buffer)
        except BaseException:
            self.close()
            raise

    @property
    def there(self) -> int:
        """Bytes from the front on, without a gap."""
        at = self._at
        return self._partial.ahead(at) if at % self._piece == 0 else at

    @property
    def whole(self) -> bool:
        """Whether all bytes are there; what they are, `finish` finds out."""
        return self.there == self._size

    def take(self, start: int, data: bytes | bytearray | memoryview) -> int:
        """Write what comes at `start`; answers `there`. Raises Misplaced, Ended, NoRoom, and ValueError for more bytes
        than the file has. After NoRoom nothing of the file is left."""
        with self._steps:
            if self._ended:
                raise Ended
            if start not in (self._at, self.there):
                raise Misplaced(self.there)
            rest = memoryview(data)
            if start + len(rest) > self._size:
                raise ValueError(f"{self._wanted.name} has {self._size} bytes, and {start + len(rest)} come")
            self._at = start
            try:
                while rest:
                    rest = rest[self._write(rest) :]
            except NoRoom:
                self._end(keep=False)
                raise
            return self.there

    def finish(self) -> Blob:
        """The whole file, verified, as a blob. Raises Mismatch, after which nothing of it is left and it may come
        again; Ended; NoRoom."""
        with self._steps:
            if self._ended:
                raise Ended
            if not self.whole:
                raise Misplaced(self.there)
            try:
                digits = self._following.finish()
            except Mismatch:
                self._partial.clear()
                self._at = 0
                self._room.filled(0)
                raise
            try:
                self._partial.sync()
                blob = self._store.adopt(self._partial.path, digits, self._wanted, ())
            finally:
                self._end(keep=False)
            return blob

    def close(self) -> None:
        """Wait for it no more. Whole pieces stay for the next to go on with."""
        with self._steps:
            self._end(keep=True)

    def _write(self, data: memoryview) -> int:
        """As much of it as the present piece takes."""
        partial, at = self._partial, self._at
        count = min(len(data), partial.room_at(at))
        if not partial.has(at):
            partial.write(at, data[:count])
        self._at = at = at + count
        if at == self._size or at % self._piece == 0:
            partial.note(at, _SENDER)
            self._room.filled(partial.came)
            self._following.catch_up(self._buffer)
        return count

    def _end(self, *, keep: bool) -> None:
        if self._ended:
            return
        self._ended = True
        partial: Partial | None = getattr(self, "_partial", None)
        if partial is not None and not (keep and partial.pieces):
            partial.remove()
        self._held.close()
