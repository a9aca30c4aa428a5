"""Hashes a partial file from the front, as far as its pieces are there, reading what was written."""

from weft_files.checksum import Checksum
from weft_files.faults import Cut
from weft_files.hashing import Hashing
from weft_files.partial import Partial


class Following:
    """One transfer's. Begins anew when the partial file does."""

    def __init__(self, partial: Partial, checksum: Checksum | None) -> None:
        self._partial = partial
        self._checksum = checksum
        self._hashing: Hashing | None = None
        self._generation = partial.generation

    def catch_up(self, buffer: memoryview) -> None:
        """Costs nothing where no piece came."""
        if self._partial.size is None:
            return
        if self._hashing is None or self._generation != self._partial.generation:
            self._generation = self._partial.generation
            self._hashing = Hashing(self._partial.size, self._checksum)
        end = self._partial.ahead(self._hashing.at)
        while self._hashing.at < end:
            came = self._partial.read_into(self._hashing.at, buffer[: min(len(buffer), end - self._hashing.at)])
            if not came:
                raise Cut("lost bytes here that were written")
            self._hashing.update(buffer[:came])

    def finish(self) -> str:
        """The whole file's blake3. Raises Mismatch."""
        assert self._hashing is not None
        assert self._hashing.at == self._partial.size
        return self._hashing.finish()
