"""Walks the bytes of a GGUF header: values by key, tensors by name, large arrays hopped over."""

import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import BinaryIO, Final, NamedTuple

MAX_KEPT_NUMBERS: Final = 4096
MAX_KEPT_STRINGS: Final = 64
"""A longer array is skipped; nothing that a header is asked for is longer."""

MAX_VALUES: Final = 100_000
MAX_TENSORS: Final = 1_000_000
MAX_DIMENSIONS: Final = 8
WINDOW: Final = 8 * 1024 * 1024
"""The header is read in pieces of this many bytes; most fit one."""

UINT32: Final = struct.Struct("<I")
UINT64: Final = struct.Struct("<Q")
STRING, ARRAY = 8, 9
SCALARS: Final = {
    0: struct.Struct("<B"),
    1: struct.Struct("<b"),
    2: struct.Struct("<H"),
    3: struct.Struct("<h"),
    4: struct.Struct("<I"),
    5: struct.Struct("<i"),
    6: struct.Struct("<f"),
    7: struct.Struct("<?"),
    10: struct.Struct("<Q"),
    11: struct.Struct("<q"),
    12: struct.Struct("<d"),
}

Scalar = str | int | float | bool


class GgufError(ValueError):
    """A model file that can't be used; the text is one sentence."""


class NotGguf(GgufError):
    """Another kind of file, or a header that makes no sense."""


class TruncatedGguf(GgufError):
    """The file is shorter than its header says."""


class Array(NamedTuple):
    """An array of the header; `items` is empty when it was too long to keep."""

    length: int
    items: tuple[Scalar, ...]


Value = Scalar | Array


class Tensor(NamedTuple):
    """Where a tensor lies; `shape` has the contiguous dimension first, `offset` counts from the data's start."""

    name: str
    shape: tuple[int, ...]
    type: int
    offset: int


NOTHING_LONG: Final[Mapping[str, int]] = MappingProxyType({})


class HeaderReader:
    """A cursor over a header. `hurried` hops over string arrays by their lengths' first byte, then checks.

    `long` names arrays that are kept though they are long, each with the most items that it may have; `most` is how
    many bytes are read at all.
    """

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        file_bytes: int,
        *,
        hurried: bool,
        long: Mapping[str, int] = NOTHING_LONG,
        most: int | None = None,
    ) -> None:
        self._file = file
        self._name = name
        self._hurried = hurried
        self._long = long
        self._most = most
        self.file_bytes = file_bytes
        self._data = self._piece(WINDOW, 0)
        self.position = 0

    def preamble(self) -> tuple[int, int, int]:
        """Version, number of tensors, number of values."""
        magic = self._data[:4]
        if magic != b"GGUF":
            raise NotGguf(f"{self._name} is not a GGUF file: it starts with {magic!r}")
        self.position = 4
        version = self._uint32()
        if version not in (2, 3):
            raise NotGguf(f"{self._name} has GGUF version {version}, versions 2 and 3 are readable")
        tensors, values = self._uint64(), self._uint64()
        if tensors > MAX_TENSORS or values > MAX_VALUES:
            raise self._broken(f"it claims {tensors} tensors and {values} values")
        return version, tensors, values

    def values(self, count: int) -> dict[str, Value]:
        """The header's values; long arrays without their items."""
        found: dict[str, Value] = {}
        for _ in range(count):
            key = self._string()
            found[key] = self._value(self._uint32(), key)
        return found

    def tensors(self, count: int) -> list[Tensor]:
        """What the header says about each tensor."""
        found: list[Tensor] = []
        for _ in range(count):
            name = self._string()
            dimensions = self._uint32()
            if dimensions > MAX_DIMENSIONS:
                raise self._broken(f"tensor {name} has {dimensions} dimensions")
            shape = tuple(self._uint64() for _ in range(dimensions))
            found.append(Tensor(name, shape, self._uint32(), self._uint64()))
        return found

    def _value(self, kind: int, key: str = "") -> Value:
        if kind == STRING:
            return self._string()
        if kind == ARRAY:
            return self._array(key)
        scalar = SCALARS.get(kind)
        if scalar is None:
            raise self._broken(f"a value has the unknown type {kind}")
        self._need(scalar.size)
        (value,) = scalar.unpack_from(self._data, self.position)
        self.position += scalar.size
        return value

    def _array(self, key: str) -> Array:
        kind, count = self._uint32(), self._uint64()
        if count > self.file_bytes:
            raise self._truncated()
        if kind == ARRAY:
            raise self._broken("it holds arrays of arrays")
        if count > self._long.get(key, count):
            raise self._broken(f"{key} has {count} items: {self._long[key]} are read at most")
        if key in self._long and kind != STRING:
            return self._numbers(kind, count)
        if key in self._long or count <= (MAX_KEPT_STRINGS if kind == STRING else MAX_KEPT_NUMBERS):
            items = tuple(self._value(kind) for _ in range(count))
            return Array(count, tuple(item for item in items if not isinstance(item, tuple)))
        if kind == STRING:
            self._skip_strings(count)
        else:
            scalar = SCALARS.get(kind)
            if scalar is None:
                raise self._broken(f"an array has the unknown type {kind}")
            self._need(count * scalar.size)
            self.position += count * scalar.size
        return Array(count, ())

    def _numbers(self, kind: int, count: int) -> Array:
        """All at once: a quarter of a million one by one take a tenth of a second."""
        scalar = SCALARS.get(kind)
        if scalar is None:
            raise self._broken(f"an array has the unknown type {kind}")
        self._need(count * scalar.size)
        items: tuple[Scalar, ...] = struct.unpack_from(f"<{count}{scalar.format[-1]}", self._data, self.position)
        self.position += count * scalar.size
        return Array(count, items)

    def _skip_strings(self, count: int) -> None:
        if not (self._hurried and self._hop(count)):
            for _ in range(count):
                length = self._uint64()
                self._need(length)
                self.position += length

    def _hop(self, count: int) -> bool:
        """Hop over strings shorter than 256 bytes, half the time of reading each length. False: not sure."""
        start = position = self.position
        while True:
            data = self._data
            try:
                for _ in range(count):
                    position += data[position] + 8
                break
            except IndexError:
                if len(data) >= self.file_bytes:
                    return False
                self._need(len(data) - self.position + 1)
                position = start
        if position > len(data):
            return False
        # each length below 256 is a byte and seven zeros; a longer one, or text out of step, breaks the count
        if data.count(b"\0" * 7, start, position) != count:
            return False
        self.position = position
        return True

    def _string(self) -> str:
        length = self._uint64()
        self._need(length)
        start = self.position
        self.position += length
        try:
            return self._data[start : start + length].decode()
        except UnicodeDecodeError:
            raise self._broken(f"the text at byte {start} is not UTF-8") from None

    def _uint32(self) -> int:
        self._need(4)
        (value,) = UINT32.unpack_from(self._data, self.position)
        self.position += 4
        return value

    def _uint64(self) -> int:
        self._need(8)
        (value,) = UINT64.unpack_from(self._data, self.position)
        self.position += 8
        return value

    def _need(self, size: int) -> None:
        """Make sure that `size` more bytes are here."""
        missing = self.position + size - len(self._data)
        if missing <= 0:
            return
        if self.position + size > self.file_bytes:
            raise self._truncated()
        if self._most is not None and self.position + size > self._most:
            raise self._broken(f"its values take more than {self._most} bytes")
        self._data += self._piece(max(missing, WINDOW), len(self._data))
        if self.position + size > len(self._data):
            raise self._truncated()

    def _piece(self, size: int, at: int) -> bytes:
        """The next bytes, none beyond the file's end; fewer where it ends before."""
        return self._file.read(min(size, self.file_bytes - at))

    def _truncated(self) -> TruncatedGguf:
        return TruncatedGguf(f"{self._name} is truncated: its header goes on after the file's {self.file_bytes} bytes")

    def _broken(self, what: str) -> NotGguf:
        return NotGguf(f"{self._name} is not a readable GGUF file: {what}")
