"""Files that this node waits for until somebody sends them: one at a time of each model, and no other is taken."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from weft_files.blobs import Blob
from weft_files.faults import Mismatch, NoRoom
from weft_files.receiving import Ended, Held, Misplaced, Receiving
from weft_files.store import Store
from weft_files.wanted import Wanted
from weft_runtime.logs import get_logger

SILENCE_S: Final = 600.0
"""For so long as much must come as `LEAST` a second makes."""
LEAST: Final = 4096
HELD_S: Final = 300.0
"""For another process of this machine that brings the same file."""
_LOOK_S: Final = 5.0
_AGAIN_S: Final = 1.0
_log: Any = get_logger("weft.uploads")


class NotSent(Exception):
    """A file that was waited for did not come; the message is a sentence for people."""


class Arrival:
    """One file, while it is waited for."""

    def __init__(self, receiving: Receiving, size: int, came: Callable[[int], None]) -> None:
        self._receiving = receiving
        self._came = came
        self._finishing = asyncio.Lock()
        self.size = size
        self.ended: asyncio.Future[Blob] = asyncio.get_running_loop().create_future()

    @property
    def there(self) -> int:
        """Bytes from the front on."""
        return self._receiving.there

    @property
    def whole(self) -> bool:
        """Whether it is here, verified."""
        return self.ended.done() and not self.ended.cancelled() and self.ended.exception() is None

    @property
    def verifies(self) -> bool:
        """Whether all is there and is being looked at."""
        return self._finishing.locked()

    async def take(self, start: int, data: bytes | bytearray | memoryview) -> None:
        """Raises Misplaced, Ended, NoRoom and ValueError, as `Receiving.take` does, and OSError."""
        try:
            self._came(await asyncio.to_thread(self._receiving.take, start, data))
        except (NoRoom, OSError) as error:
            self._fail(error)
            raise

    async def finish(self) -> None:
        """Verify what is there. Raises Mismatch, Misplaced, Ended, NoRoom and OSError."""
        async with self._finishing:
            if self.ended.done():
                return
            try:
                blob = await asyncio.to_thread(self._receiving.finish)
            except Mismatch:
                self._came(0)
                raise
            except (NoRoom, OSError) as error:
                self._fail(error)
                raise
            if not self.ended.done():
                self.ended.set_result(blob)

    async def close(self) -> None:
        """Whole pieces stay for the next to go on with."""
        await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(self._receiving.close)))

    def _fail(self, error: Exception) -> None:
        if not self.ended.done():
            self.ended.set_exception(error)


class Arrivals:
    """Of one store. Methods are called on the loop."""

    def __init__(self, store: Store, *, silence_s: float = SILENCE_S, look_s: float = _LOOK_S) -> None:
        self._store = store
        self._silence_s = silence_s
        self._look_s = look_s
        self._open: dict[tuple[str, str], Arrival] = {}

    def open(self, files: str, name: str) -> Arrival | None:
        """What a file of a model arrives in, by the model's `files_digest`; None: it isn't waited for now."""
        return self._open.get((files, name))

    async def wait(
        self,
        files: str,
        wanted: Wanted,
        came: Callable[[int], None],
        elsewhere: Callable[[], Awaitable[bool]] | None = None,
    ) -> Blob | None:
        """The file once it was sent; `came` is told how much of it is here. Raises NotSent and NoRoom.

        Room is reserved while it waits. Cancelled, it keeps the pieces that came. `elsewhere`: asked now and then
        while nothing comes; None is answered where it says that the file can be had otherwise."""
        receiving = await self._begin(wanted)
        arrival = Arrival(receiving, wanted.size or 0, came)
        self._open[files, wanted.name] = arrival
        try:
            came(arrival.there)
            if receiving.whole:  # the last agent ended before it had looked at them
                await self._finish_left(arrival, wanted)
            return await self._ended(arrival, wanted, came, elsewhere)
        finally:
            del self._open[files, wanted.name]
            await arrival.close()
            if arrival.ended.done() and not arrival.ended.cancelled():
                arrival.ended.exception()

    async def _begin(self, wanted: Wanted) -> Receiving:
        until = time.monotonic() + HELD_S
        while True:
            opening = asyncio.ensure_future(asyncio.to_thread(Receiving, self._store, wanted))
            try:
                return await asyncio.shield(opening)
            except asyncio.CancelledError:
                opening.add_done_callback(_close)
                raise
            except Held as held:
                if time.monotonic() > until:
                    raise NotSent(f"{held} for {HELD_S:g} s, in vain") from None
            await asyncio.sleep(_AGAIN_S)

    async def _finish_left(self, arrival: Arrival, wanted: Wanted) -> None:
        try:
            await arrival.finish()
        except Mismatch as fault:
            _log.warning("what was left of a file is not used", name=wanted.name, why=str(fault))

    async def _ended(
        self,
        arrival: Arrival,
        wanted: Wanted,
        came: Callable[[int], None],
        elsewhere: Callable[[], Awaitable[bool]] | None,
    ) -> Blob | None:
        """Until it is whole, too little came for too long, or it is to be had elsewhere."""
        size, mark, since = arrival.size, arrival.there, time.monotonic()
        last = -1
        while True:
            done, _ = await asyncio.wait({arrival.ended}, timeout=self._look_s)
            if done:
                return arrival.ended.result()
            now, there, before = time.monotonic(), arrival.there, last
            came(there)
            last = there
            if there == before and not arrival.verifies and elsewhere is not None and await elsewhere():
                return arrival.ended.result() if arrival.whole else None
            enough = min(LEAST * self._silence_s, size - mark)
            if there < mark or arrival.verifies or (there > mark and there - mark >= enough):
                mark, since = there, now
            elif now - since > self._silence_s:
                raise NotSent(
                    f"{wanted.name} was not sent: {there} of its {size} bytes are here, and nothing more came within"
                    f" {self._silence_s / 60:.0f} min; deploy it again from where it is, and it goes on"
                )


def _close(opening: "asyncio.Future[Receiving]") -> None:
    """Of an opening that nobody waits for any more."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


__all__ = ["Arrival", "Arrivals", "Ended", "Misplaced", "NotSent"]
