"""A file at an address, read by ranges as if it lay on a disk: for headers, never for weights."""

import io
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from weft_contracts.facts.source import SourceFile
from weft_files.address import Address

from weft_sources.asking import Answer, ask, retried
from weft_sources.refused import SourceRefused
from weft_sources.settings import SourceSettings
from weft_sources.web import check_status, size_of

PIECE: Final = 1 << 20
"""Bytes; what is asked for begins and ends at multiples of it, where no other size is given."""
MOST_CACHED: Final = 16 << 20
"""Bytes kept, the latest used."""
MOST_AT_ONCE: Final = 8 << 20
"""Bytes of one request."""
MOST_READ: Final = 256 << 20
"""Bytes that one opened file may bring over the network, however it is read."""


class RangedFile(io.RawIOBase):
    """Seekable and read-only. Reads raise SourceRefused once more than 256 MiB would have come."""

    def __init__(
        self, address: Callable[[], Address], file: SourceFile, settings: SourceSettings, piece: int = PIECE
    ) -> None:
        """`address` is asked before each request, since a signed one ends. Nothing is asked before the first read."""
        super().__init__()
        self.name = file.name
        self.size = file.size
        self._address = address
        self._file = file
        self._settings = settings
        self._piece_bytes = piece
        self._pieces: OrderedDict[int, bytes] = OrderedDict()
        self._position = 0
        self.came = 0
        """Bytes that were asked for so far."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        if start + offset < 0:
            raise ValueError(f"{self.name} has no byte {start + offset}")
        self._position = start + offset
        return self._position

    def readinto(self, buffer: Any, /) -> int:
        wanted = min(len(buffer), max(0, self.size - self._position))
        if not wanted:
            return 0
        first, last = self._position // self._piece_bytes, (self._position + wanted - 1) // self._piece_bytes
        piece = self._piece(first, min(last, first + max(1, MOST_AT_ONCE // self._piece_bytes) - 1))
        inside = self._position - first * self._piece_bytes
        given = piece[inside : inside + wanted]
        buffer[: len(given)] = given
        self._position += len(given)
        return len(given)

    def _piece(self, number: int, until: int) -> bytes:
        """One piece, fetched in one request with those behind it that are wanted as well."""
        if number not in self._pieces:
            last = number
            while last < until and last + 1 not in self._pieces:
                last += 1
            body = self._fetch(number * self._piece_bytes, min((last + 1) * self._piece_bytes, self.size))
            for each in range(last, number - 1, -1):  # the nearest last, so that it stays longest
                self._pieces[each] = body[(each - number) * self._piece_bytes : (each - number + 1) * self._piece_bytes]
            while len(self._pieces) > max(1, MOST_CACHED // self._piece_bytes):
                self._pieces.popitem(last=False)
        self._pieces.move_to_end(number)
        return self._pieces[number]

    def _fetch(self, begin: int, end: int) -> bytes:
        address = self._address()
        if self.came + end - begin > MOST_READ:
            raise SourceRefused(f"{address.said} has a header of more than {MOST_READ >> 20} MiB: no model has one")
        self.came += end - begin
        return retried(lambda: self._asked(address, begin, end), address.said)

    def _asked(self, address: Address, begin: int, end: int) -> bytes:
        length = end - begin
        with ask(address, self._settings, first=begin, last=end - 1, most=length) as answer:
            check_status(answer, address.said)
            size_of(self._file, answer, address.said)
            if answer.status == 200 and length != self.size:
                raise SourceRefused(f"{address.said} is served whole or not at all: want a server with ranges")
            if answer.status == 206:
                _hold_range(answer, begin, end, address.said)
            body = answer.read(length)
        if len(body) != length:
            raise SourceRefused(f"{address.said} ends after {begin + len(body)} of {self.size} bytes")
        return body


def _hold_range(answer: Answer, begin: int, end: int, said: str) -> None:
    told = answer.headers.get("content-range", "").partition("/")[0]
    if told != f"bytes {begin}-{end - 1}":
        raise SourceRefused(f"{said} gives another range than the one it was asked for")
