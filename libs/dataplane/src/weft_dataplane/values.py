"""Large values beside the stream: kept for a short while, bounded in size, count and age."""

import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from time import monotonic

from weft_contracts.gen import session_pb2 as pb

from weft_dataplane.limits import MAX_CHUNK_BYTES, MAX_VALUE_BYTES


class ValueRefused(Exception):
    """A value that can't be taken or found; the sentence is meant for the caller."""


@dataclass(slots=True)
class _Value:
    data: bytes
    until: float


class ValueStore:
    """Keeps values by an unguessable handle until they are taken or too old.

    Full is full: a new value is refused, an accepted one is never pushed out before its time.
    """

    def __init__(
        self,
        *,
        max_value_bytes: int = MAX_VALUE_BYTES,
        max_total_bytes: int = 4 * MAX_VALUE_BYTES,
        max_values: int = 256,
        max_age_s: float = 60.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._max_value_bytes = max_value_bytes
        self._max_total_bytes = max_total_bytes
        self._max_values = max_values
        self._max_age_s = max_age_s
        self._clock = clock
        self._values: dict[str, _Value] = {}
        self._arriving = 0
        self._arriving_bytes = 0
        self._bytes = 0

    def keep(self, data: bytes) -> pb.Handle:
        """Keep a value and answer its handle. Raises ValueRefused when it is too large or the store is full."""
        if len(data) > self._max_value_bytes:
            raise ValueRefused(
                f"a value of {len(data)} bytes is larger than the bound of {self._max_value_bytes} bytes"
            )
        self._drop_old()
        if len(self._values) >= self._max_values or self._bytes + len(data) > self._max_total_bytes:
            raise ValueRefused(self._full())
        handle = secrets.token_hex(16)
        self._values[handle] = _Value(data, self._clock() + self._max_age_s)
        self._bytes += len(data)
        return pb.Handle(handle=handle, size=len(data))

    async def receive(self, chunks: AsyncIterator[pb.Chunk]) -> pb.Handle:
        """Collect the chunks of one value and keep it. Bytes count as soon as they arrive."""
        parts: list[bytes] = []
        size = 0
        self._drop_old()
        if len(self._values) + self._arriving >= self._max_values:
            raise ValueRefused(self._full())
        self._arriving += 1
        try:
            async for chunk in chunks:
                if len(chunk.data) > MAX_CHUNK_BYTES:
                    raise ValueRefused(
                        f"a chunk of {len(chunk.data)} bytes is larger than the bound of {MAX_CHUNK_BYTES} bytes"
                    )
                size += len(chunk.data)
                self._arriving_bytes += len(chunk.data)
                if size > self._max_value_bytes:
                    raise ValueRefused(f"the value is larger than the bound of {self._max_value_bytes} bytes")
                if self._bytes + self._arriving_bytes > self._max_total_bytes:
                    self._drop_old()
                    if self._bytes + self._arriving_bytes > self._max_total_bytes:
                        raise ValueRefused(self._full())
                parts.append(chunk.data)
        finally:
            self._arriving -= 1
            self._arriving_bytes -= size
        return self.keep(b"".join(parts))

    def take(self, handle: str) -> bytes:
        """Hand a value out; it is gone then. Raises ValueRefused when it is unknown or too old."""
        self._drop_old()
        value = self._values.pop(handle, None)
        if value is None:
            raise ValueRefused(
                f"no value has the handle {handle[:40]!r}: it was taken, or is older than {self._max_age_s:g} s"
            )
        self._bytes -= len(value.data)
        return value.data

    def _drop_old(self) -> None:
        now = self._clock()
        while self._values:  # all live equally long, so the first is the oldest
            handle, value = next(iter(self._values.items()))
            if value.until > now:
                return
            del self._values[handle]
            self._bytes -= len(value.data)

    def _full(self) -> str:
        return f"the store of large values is full ({len(self._values)} values, {self._bytes} bytes): try again later"


def chunks_of(data: bytes) -> Iterator[pb.Chunk]:
    """Cut a value into chunks of the largest size that travels; an empty value is one empty chunk."""
    for start in range(0, max(1, len(data)), MAX_CHUNK_BYTES):
        yield pb.Chunk(data=data[start : start + MAX_CHUNK_BYTES])
