"""The line before an engine: who has a place, who waits, how many may, and how one that waits leaves.

First come, first served. Nothing here awaits or starts a thread: `start` is called as soon as one has a place, in the
same turn of the loop in which it entered or another left.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Ending, RequestRefused, Ticket

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class WaitingLine(Generic[K, T]):
    """At most `places` at once have started, and at most `most_waiting` more wait for that."""

    def __init__(
        self, places: int, most_waiting: int, start: Callable[[T], None], *, engine_queues: bool = False
    ) -> None:
        """`start` must neither raise nor enter or leave. `engine_queues`: who waits has started, too, since the engine
        has a line of its own: then this only bounds and counts."""
        self._places = places
        self._most = places + most_waiting
        self._begin = start
        self._ahead = self._most if engine_queues else places
        self._waits: dict[K, T] = {}
        self.started: dict[K, T] = {}
        """Those that were started and have not left."""

    @property
    def running(self) -> int:
        """How many have a place."""
        return min(len(self.started), self._places)

    @property
    def waiting(self) -> int:
        """How many have none yet."""
        return len(self.started) + len(self._waits) - self.running

    def refuse_full(self) -> None:
        """Raises RequestRefused (busy) where nobody more may enter."""
        if len(self.started) + len(self._waits) >= self._most:
            raise RequestRefused(pb.FAULT_BUSY, f"{self.waiting} requests wait already")

    def enter(self, key: K, one: T) -> None:
        """Take a place, or wait for one. Raises RequestRefused (busy)."""
        self.refuse_full()
        self._waits[key] = one
        self._start_next()

    def leave(self, key: K) -> None:
        """Give up a place, which the next has then, or the waiting for one. Who has left already may leave again."""
        if key in self.started:
            del self.started[key]
            self._start_next()
        else:
            self._waits.pop(key, None)

    def clear_waiting(self) -> None:
        """Nobody waits any more, and nobody is told."""
        self._waits.clear()

    def _start_next(self) -> None:
        while self._waits and len(self.started) < self._ahead:
            key = next(iter(self._waits))
            self.started[key] = one = self._waits.pop(key)
            self._begin(one)


class RequestLine(WaitingLine[Ticket, T]):
    """The line of requests that are answered through tickets."""

    def cancel(self, ticket: Ticket) -> T | None:
        """End a request that only waits. Answers one that was started: its engine must end it, and it leaves then."""
        started = self.started.get(ticket)
        if started is None and ticket in self._waits:
            del self._waits[ticket]
            ticket.finish(Ending(pb.FINISH_CANCELLED))
        return started


class CallLine(WaitingLine["asyncio.Future[None]", "asyncio.Future[None]"]):
    """The line of calls with one answer, such as `embed`."""

    def __init__(self, places: int, most_waiting: int) -> None:
        super().__init__(places, most_waiting, _wake)

    async def turn(self) -> "asyncio.Future[None]":
        """Wait for a place; who got it must `leave` with what this answers. Raises RequestRefused (busy)."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.enter(turn, turn)
        try:
            await turn
        except BaseException:
            self.leave(turn)
            raise
        return turn

    @asynccontextmanager
    async def place(self) -> AsyncGenerator[None]:
        """Have a place for as long as the block runs. Raises RequestRefused (busy)."""
        turn = await self.turn()
        try:
            yield
        finally:
            self.leave(turn)


def _wake(turn: "asyncio.Future[None]") -> None:
    if not turn.done():  # cancelled, and on its way out of the line
        turn.set_result(None)
