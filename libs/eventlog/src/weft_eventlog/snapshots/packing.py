"""Lines to compressed pieces and back."""

import zlib
from collections.abc import Iterator, Sequence

from weft_contracts.topology import SNAPSHOT_CHUNK_BYTES

from weft_eventlog.snapshots.mark import MAX_BYTES, MAX_UNPACKED, Head, Unusable

_LEVEL = 1
"""A fold's memory repeats itself: to a twentieth, at 2 to 3 ms a megabyte."""
_AT_ONCE = 256 * 1024


class TooLarge(ValueError):
    """The memory takes more room than a snapshot has."""


class Packer:
    """Takes lines in, gives pieces."""

    def __init__(self) -> None:
        self._zlib = zlib.compressobj(_LEVEL)
        self._packed = bytearray()
        self.unpacked = 0

    def add(self, line: bytes) -> None:
        """Take one line. Raises TooLarge."""
        self.unpacked += len(line)
        self._packed += self._zlib.compress(line)
        self._check()

    def pieces(self) -> list[bytes]:
        """All of it. Take no more lines afterwards. Raises TooLarge."""
        self._packed += self._zlib.flush()
        self._check()
        packed, size = bytes(self._packed), SNAPSHOT_CHUNK_BYTES
        return [packed[at : at + size] for at in range(0, len(packed), size)]

    def _check(self) -> None:
        if len(self._packed) > MAX_BYTES or self.unpacked > MAX_UNPACKED:
            raise TooLarge(f"it takes more than {MAX_BYTES >> 20} MiB packed or {MAX_UNPACKED >> 30} GiB unpacked")


def lines(head: Head, pieces: Sequence[bytes]) -> Iterator[bytes]:
    """The lines, once the pieces are what the head says. Raises Unusable."""
    if sum(map(len, pieces)) != head.packed or head.digest(pieces) != head.blake3:
        raise Unusable("its content is not what its blake3 says")
    unzip, left, rest = zlib.decompressobj(), head.unpacked, b""
    try:
        for piece in pieces:
            waiting = piece
            while waiting:
                some = unzip.decompress(waiting, _AT_ONCE)
                waiting = unzip.unconsumed_tail
                left -= len(some)
                if left < 0:
                    raise Unusable("it unpacks to more than its head says")
                *whole, rest = (rest + some).split(b"\n")
                yield from whole
    except zlib.error as error:
        raise Unusable(f"it can't be unpacked: {error}") from error
    if left or rest:
        raise Unusable("it unpacks to less than its head says")
