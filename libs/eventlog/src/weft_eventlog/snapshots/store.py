"""Where a fold's snapshots lie: two slots in the stream SNAPSHOTS, each a head and numbered pieces.

A slot is written under its head's sequence: first the head says that somebody writes there, then the pieces come, then
the head that names them. Who loses the head to another writer leaves the slot to it. What a crash leaves half-written
has no head that names it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from nats.aio.client import Client
from nats.js.api import RawStreamMsg
from nats.js.errors import APIError, NotFoundError
from weft_contracts import subjects
from weft_contracts.topology import SNAPSHOTS

from weft_eventlog.errors import unavailable
from weft_eventlog.guards import EXPECTED, IN_FLIGHT, WRONG_LAST_SEQUENCE
from weft_eventlog.snapshots.mark import Head, Unusable, Writing, read_head

SLOTS = ("a", "b")
"""While one is written, the other stands."""
_TIMEOUT = 5.0
_AT_ONCE = 4
"""Pieces that are read side by side."""


class Outrun(Exception):
    """Somebody else writes into the slot."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot as it was found."""

    name: str
    revision: int
    """Sequence of its head in the store; 0: it was never used."""
    holds: Head | Writing | Unusable | None


class SnapshotStore:
    """One fold's part of the store. Every method raises LogUnavailable."""

    def __init__(self, client: Client, service: str, fold: str) -> None:
        self._js = client.jetstream(timeout=_TIMEOUT)
        self.service = service
        self.fold = fold

    async def slots(self) -> list[Slot]:
        """What stands at the heads, read from the leader."""
        return [await self._slot(name) for name in SLOTS]

    async def pieces(self, slot: str, head: Head) -> list[bytes]:
        """What a head names. Raises Unusable where a piece lacks."""
        several = asyncio.Semaphore(_AT_ONCE)

        async def piece(number: int) -> bytes | None:
            async with several:
                found = await self._last(slot, str(number))
            return found and found.data

        found = await asyncio.gather(*(piece(number) for number in range(head.chunks)))
        pieces = [piece for piece in found if piece]
        if len(pieces) < head.chunks:
            raise Unusable(f"{head.chunks - len(pieces)} of its {head.chunks} pieces are missing")
        return pieces

    async def write(self, slot: Slot, instance: str, head: Head, pieces: Sequence[bytes]) -> None:
        """Put a snapshot into a slot. Raises Outrun."""
        revision = await self._put(slot.name, Writing(instance=instance), slot.revision)
        with unavailable("the snapshot can't be stored"):
            for number, piece in enumerate(pieces):
                await self._js.publish(self._subject(slot.name, str(number)), piece, stream=SNAPSHOTS.name)
        await self._put(slot.name, head, revision)

    async def _slot(self, name: str) -> Slot:
        found = await self._last(name, "head")
        if found is None:
            return Slot(name, 0, None)
        revision = found.seq or 0
        try:
            return Slot(name, revision, read_head(found.data or b""))
        except Unusable as why:
            return Slot(name, revision, why)

    async def _last(self, slot: str, part: str) -> RawStreamMsg | None:
        subject = self._subject(slot, part)
        with unavailable(f"{subject} can't be read"):
            try:
                return await self._js.get_msg(SNAPSHOTS.name, subject=subject)
            except NotFoundError:
                return None

    async def _put(self, slot: str, head: Head | Writing, revision: int) -> int:
        subject, body = self._subject(slot, "head"), head.model_dump_json().encode()
        with unavailable(f"{subject} can't be written"):
            try:
                ack = await self._js.publish(subject, body, stream=SNAPSHOTS.name, headers={EXPECTED: str(revision)})
            except APIError as error:
                if error.err_code in WRONG_LAST_SEQUENCE | IN_FLIGHT:  # another writes: let it
                    raise Outrun(subject) from error
                raise
        return int(ack.seq)

    def _subject(self, slot: str, part: str) -> str:
        return f"{subjects.snapshot(self.service, self.fold, slot)}.{part}"
