"""Requests that wait for their model: in line where all its replicas are busy, together while it loads. Both are
bounded."""

import asyncio
from collections import Counter, deque

from weft_contracts.ids import ModelId


class QueueFull(Exception):
    """So many wait already that one more would wait in vain."""


class LoadingLine:
    """How many requests wait for each model that has no ready replica."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: Counter[ModelId] = Counter()

    def enter(self, model: ModelId) -> bool:
        """Whether one more may wait; it must leave."""
        if self._waiting[model] >= self._limit:
            return False
        self._waiting[model] += 1
        return True

    def leave(self, model: ModelId) -> None:
        """One waits no longer, or looks again."""
        self._waiting[model] -= 1
        if not self._waiting[model]:
            del self._waiting[model]

    @property
    def total(self) -> int:
        return self._waiting.total()


class BusyQueue:
    """One line per model."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lines: dict[ModelId, deque[asyncio.Future[None]]] = {}

    def waiting(self, model: ModelId) -> int:
        """How many stand in a model's line."""
        line = self._lines.get(model)
        return len(line) if line else 0

    @property
    def total(self) -> int:
        return sum(len(line) for line in self._lines.values())

    async def turn(self, model: ModelId, timeout: float, *, again: bool) -> None:
        """Wait until it is our turn to look for room. `again` keeps the place at the head after a vain look.

        Raises QueueFull, TimeoutError.
        """
        line = self._lines.setdefault(model, deque())
        if len(line) >= self._limit and not again:
            raise QueueFull
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if again:
            line.appendleft(turn)
        else:
            line.append(turn)
        try:
            # wait_for would swallow a cancellation that comes together with our turn, and the turn with it
            async with asyncio.timeout(timeout):
                await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.wake(model)  # our turn came as we left: hand it on
            raise
        finally:
            if turn in line:
                line.remove(turn)
            if not line and self._lines.get(model) is line:  # a later line may stand there by now
                del self._lines[model]

    def wake(self, model: ModelId) -> None:
        """There may be room: let the first of the line look."""
        line = self._lines.get(model)
        while line:
            turn = line.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def wake_all(self) -> None:
        """What can be hoped for has changed: let everyone look."""
        for line in self._lines.values():
            while line:
                turn = line.popleft()
                if not turn.done():
                    turn.set_result(None)
