"""When a fold's snapshot is taken, and from which one a start goes on.

Any instance that folds may write. It does so when the newest snapshot that it knows is `every` commits behind, at most
a twentieth of the time, and first looks whether another instance was there before. The fold stands still only while
its tables are copied (some milliseconds); the rest is done in slices of about 2 ms with pauses between them.
"""

import asyncio
import math
import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import structlog
from weft_contracts.ids import EventId

from weft_eventlog.cancelling import end_if_cancelled
from weft_eventlog.errors import LogUnavailable
from weft_eventlog.snapshots.mark import Head, Mark, Unusable, Writing, check
from weft_eventlog.snapshots.packing import Packer, TooLarge, lines
from weft_eventlog.snapshots.shape import BadContent, CannotSnapshot, Shape
from weft_eventlog.snapshots.store import Outrun, Slot, SnapshotStore
from weft_eventlog.snapshots.version import fold_version

_LOOK = 1.0
"""Seconds between two looks at whether a snapshot is due."""
_REST = 0.01
"""Seconds between two slices of a snapshot that is taken."""
_SHARE = 20
"""One part of so many of a process's time may go into snapshots."""
_GAP = 5.0
"""Seconds between two snapshots at least."""
_AGAIN = 30.0
"""Seconds until the next try after one that failed."""
_TRIES = 3
"""Times that a store which doesn't answer is asked at a start."""
_ABANDONED = 60.0
"""Seconds after which a slot where somebody writes is taken over, on the own clock."""
_log: Any = structlog.get_logger(part="weft.snapshots")


class Folding(Protocol):
    """A projection, as far as its snapshots are concerned."""

    @property
    def mark(self) -> Mark | None:
        """Where the fold stands; None while it is between two places or must not be decided from."""
        ...


class Log(Protocol):
    """The log, as far as a start from a snapshot is concerned."""

    async def identity(self) -> tuple[str, int]: ...

    async def event_id_at(self, sequence: int) -> EventId | None: ...


class Snapshots:
    """One fold's snapshots: `take_up` before the fold begins, `run` beside it."""

    def __init__(
        self,
        store: SnapshotStore,
        memory: object,
        *,
        instance: str,
        every: int,
        on_restored: Callable[[], None] = lambda: None,
    ) -> None:
        """`memory` is what the fold changes (see `shape`); the code that its class is made of is its version.

        `on_restored` is called after the memory was filled: it makes what the memory leaves out.
        """
        self._store = store
        self._memory = memory
        self._version: str | None = None
        self._shape: Shape | None = None
        self._instance = instance
        self._every = every
        self._on_restored = on_restored
        self._last = 0
        self._tries = 0
        self._dropped: dict[str, int] = {}
        """Revisions of slots that were found to be no good, whatever their heads say."""
        self._writes: tuple[int, float] = (-1, 0.0)
        self.start: Head | None = None
        """The snapshot that the fold went on from; None where it began at the log's beginning."""
        self.newest: Head | None = None
        """The last one that this process wrote."""

    async def take_up(self, log: Log) -> Mark | None:
        """Fill the memory from the newest snapshot that fits the log, and say where it stands; None for none.

        What does not fit is dropped with a line in the log. Raises LogUnavailable, but for the store's own silence
        only twice: then the log is folded from its beginning.
        """
        identity, end = await log.identity()
        if (version := self._known_version()) is None:
            _log.warning("no snapshots", fold=self._store.fold, why="the fold's sources are not there to be compared")
            return None
        try:
            slots = await self._store.slots()
            for slot in sorted(slots, key=_claimed, reverse=True):
                try:
                    head = await self._taken(log, slot, version, identity, end)
                except (Unusable, BadContent) as why:
                    _log.warning("snapshot dropped", fold=self._store.fold, slot=slot.name, why=str(why))
                    if not isinstance(slot.holds, Writing):
                        self._dropped[slot.name] = slot.revision
                    continue
                if head is not None:
                    return head.mark
        except LogUnavailable as error:
            self._tries += 1
            if self._tries < _TRIES:
                raise
            _log.warning("snapshots can't be read", fold=self._store.fold, why=str(error))
        _log.info("starts without a snapshot", fold=self._store.fold, behind=end)
        return None

    async def earlier(self, log: Log, position: int, memory: object) -> Mark | None:
        """Fill another memory of the fold's kind, just made, from the newest snapshot that isn't behind a position, and
        say where that stands; None where none of them fits. Raises LogUnavailable."""
        identity, _ = await log.identity()
        if (version := self._known_version()) is None:
            return None
        for slot in sorted(await self._store.slots(), key=_claimed, reverse=True):
            try:
                head = await self._filled(memory, log, slot, version, identity, position)
            except (Unusable, BadContent):
                continue
            if head is not None:
                return head.mark
        return None

    async def _taken(self, log: Log, slot: Slot, version: str, identity: str, end: int) -> Head | None:
        """Fill the memory from one slot; None for an unused one. Raises Unusable, BadContent, LogUnavailable."""
        began = time.perf_counter()
        head = await self._filled(self._memory, log, slot, version, identity, end)
        if head is None:
            return None
        self._on_restored()
        self.start, self._last = head, head.sequence
        _log.info(
            "starts from a snapshot",
            fold=self._store.fold,
            slot=slot.name,
            position=head.sequence,
            behind=end - head.sequence,
            age_s=round(time.time() - head.made_at, 1),
            bytes=head.packed,
            took_ms=round(1000 * (time.perf_counter() - began)),
        )
        return head

    async def _filled(self, memory: object, log: Log, slot: Slot, version: str, identity: str, end: int) -> Head | None:
        """Fill a memory from one slot; None for an unused one. Raises Unusable, BadContent, LogUnavailable."""
        head = _head(slot)
        if head is None:
            return None
        check(head, self._store.service, self._store.fold, version, identity, end)
        if await log.event_id_at(head.sequence) != head.event_id:
            raise Unusable(f"another event stands at {head.sequence} than the one folded: the log was rewound")
        self._known_shape().fill(memory, await self._read(slot, head))
        return head

    async def run(self, folding: Folding) -> None:
        """Write a snapshot whenever one is due, for ever. Ends only by cancellation."""
        not_before = 0.0
        while self._known_version() is not None:
            end_if_cancelled()
            await asyncio.sleep(_LOOK)
            mark = folding.mark
            if mark is None or mark.sequence - self._last < self._every or time.monotonic() < not_before:
                continue
            try:
                spent = await self._write(folding)
                not_before = time.monotonic() + max(_GAP, _SHARE * spent)
            except Outrun:
                not_before = time.monotonic() + _GAP * random.uniform(0.7, 1.3)
            except LogUnavailable as error:
                _log.warning("snapshot not written", fold=self._store.fold, why=str(error))
                not_before = time.monotonic() + _AGAIN * random.uniform(0.7, 1.3)
            except (CannotSnapshot, TooLarge) as error:
                _log.error("this fold has no snapshots", fold=self._store.fold, why=str(error))
                break
        await asyncio.Event().wait()

    async def _read(self, slot: Slot, head: Head) -> list[Any]:
        pieces = await self._store.pieces(slot.name, head)
        reader = self._known_shape().reader()
        for line in lines(head, pieces):
            reader.take(line)
            await asyncio.sleep(0)  # others have their turn
        return reader.content()

    async def _write(self, folding: Folding) -> float:
        """Take a snapshot and store it, unless another instance has; the seconds of work that it took."""
        found = await self._store.slots()
        slots = [replace(s, holds=None) if self._dropped.get(s.name) == s.revision else s for s in found]
        mark = folding.mark
        if mark is None:
            return 0.0
        theirs = max((_head_like(slot, self._version, mark) for slot in slots), default=0)
        self._last = max(self._last, theirs)
        slot = self._free(slots, mark)
        if mark.sequence - self._last < self._every or slot is None:
            return 0.0
        began = time.perf_counter()
        shape, packer = self._known_shape(), Packer()
        copied = shape.copied(self._memory)  # no await since the mark: they belong together
        still = spent = time.perf_counter() - began
        slices = shape.slices(copied)
        while True:
            began = time.perf_counter()
            line = next(slices, None)
            if line is None:
                break
            packer.add(line)
            spent += time.perf_counter() - began
            await asyncio.sleep(_REST)
        pieces = packer.pieces()
        head = self._sealed(mark, packer.unpacked, pieces)
        await self._store.write(slot, self._instance, head, pieces)
        self.newest, self._last = head, head.sequence
        _log.info(
            "snapshot written",
            fold=self._store.fold,
            slot=slot.name,
            position=head.sequence,
            bytes=head.packed,
            unpacked=head.unpacked,
            still_ms=round(1000 * still, 1),
            work_ms=round(1000 * spent),
        )
        return spent

    def _sealed(self, mark: Mark, unpacked: int, pieces: list[bytes]) -> Head:
        assert self._version is not None
        return Head(
            service=self._store.service,
            fold=self._store.fold,
            version=self._version,
            identity=mark.identity,
            sequence=mark.sequence,
            event_id=mark.event_id,
            suspects=mark.suspects,
            made_at=time.time(),
            chunks=len(pieces),
            packed=sum(map(len, pieces)),
            unpacked=unpacked,
            blake3="",
        ).sealed(pieces)

    def _free(self, slots: list[Slot], mark: Mark) -> Slot | None:
        """The slot to write into: the one that is least worth keeping. None while somebody else writes."""
        for slot in slots:
            if isinstance(slot.holds, Writing) and slot.holds.instance != self._instance:
                if slot.revision != self._writes[0]:
                    self._writes = (slot.revision, time.monotonic())
                return slot if time.monotonic() - self._writes[1] >= _ABANDONED else None
        return min(slots, key=lambda slot: _worth(slot, mark.identity, mark.sequence))

    def _known_version(self) -> str | None:
        if self._version is None:
            self._version = fold_version(type(self._memory))
        return self._version

    def _known_shape(self) -> Shape:
        if self._shape is None:
            self._shape = Shape(type(self._memory))
        return self._shape


def _head(slot: Slot) -> Head | None:
    """The head of a slot that holds a snapshot; None for an unused slot. Raises Unusable."""
    match slot.holds:
        case Unusable() as why:
            raise why
        case Writing(instance=instance):
            raise Unusable(f"it is not finished by {instance}")
        case found:
            return found


def _claimed(slot: Slot) -> float:
    """Where a slot says that it stands; first of all comes what is no snapshot, so that it is said."""
    match slot.holds:
        case Head(sequence=sequence):
            return sequence
        case None:
            return 0
        case _:
            return math.inf


def _worth(slot: Slot, identity: str, end: int) -> int:
    """How much a slot is worth keeping, for who stands at `end` of a stream: what can't be of it is worth nothing."""
    head = slot.holds
    return head.sequence if isinstance(head, Head) and head.identity == identity and head.sequence <= end else 0


def _head_like(slot: Slot, version: str | None, mark: Mark) -> int:
    """How far another instance's snapshot goes that this one could start from as well; 0 for none."""
    head = slot.holds
    if isinstance(head, Head) and (head.version, head.identity) == (version, mark.identity):
        return min(head.sequence, mark.sequence)
    return 0
