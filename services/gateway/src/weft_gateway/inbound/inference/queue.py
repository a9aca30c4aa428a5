"""Requests that wait for their model: in line where all its replicas are busy, together while it loads. Both are
bounded."""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence

from weft_contracts.ids import ModelId


class QueueFull(Exception):
    """So many wait already that one more would wait in vain."""


class LoadingLine:
    """How many requests wait for each model that has no ready replica."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: Counter[ModelId] = Counter()

    def has_place(self, model: ModelId) -> bool:
        """Whether one more may wait."""
        return self._waiting[model] < self._limit

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

    @property
    def by_model(self) -> dict[ModelId, int]:
        """How many wait for each model, without those for which none does."""
        return dict(self._waiting)


class BusyQueue:
    """One line per model."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lines: dict[ModelId, deque[asyncio.Future[ModelId]]] = {}

    def waiting(self, model: ModelId) -> int:
        """How many stand in a model's line."""
        line = self._lines.get(model)
        return len(line) if line else 0

    def has_place(self, model: ModelId) -> bool:
        """Whether one more may stand in a model's line."""
        return self.waiting(model) < self._limit

    @property
    def by_model(self) -> dict[ModelId, int]:
        """How many stand in each model's line, without empty ones."""
        return {model: len(line) for model, line in self._lines.items() if line}

    @property
    def total(self) -> int:
        """Who stands in several lines counts once."""
        return len({turn for line in self._lines.values() for turn in line})

    async def turn(self, model: ModelId, timeout: float, *, again: bool, beside: Sequence[ModelId] = ()) -> ModelId:
        """Wait until it is our turn to look for room, and say with which model. `again` keeps the place at the head
        after a vain look.

        `beside`: other models, any of which will do: we stand in their lines, too, where there is a place.
        Raises QueueFull, TimeoutError.
        """
        line = self._lines.setdefault(model, deque())
        if len(line) >= self._limit and not again:
            raise QueueFull
        turn: asyncio.Future[ModelId] = asyncio.get_running_loop().create_future()
        if again:
            line.appendleft(turn)
        else:
            line.append(turn)
        others = [other for other in beside if self.has_place(other)]
        for other in others:
            self._lines.setdefault(other, deque()).append(turn)
        try:
            # wait_for would swallow a cancellation that comes together with our turn, and the turn with it
            async with asyncio.timeout(timeout):
                return await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.wake(turn.result())  # our turn came as we left: hand it on
            raise
        finally:
            for each in (model, *others):
                self._leave(each, turn)

    def wake(self, model: ModelId) -> None:
        """There may be room: let the first of the line look."""
        line = self._lines.get(model)
        while line:
            turn = line.popleft()
            if not turn.done():
                turn.set_result(model)
                return

    def wake_all(self) -> None:
        """What can be hoped for has changed: let everyone look."""
        for model, line in self._lines.items():
            while line:
                turn = line.popleft()
                if not turn.done():
                    turn.set_result(model)

    def _leave(self, model: ModelId, turn: "asyncio.Future[ModelId]") -> None:
        line = self._lines.get(model)
        if line is None:
            return
        if turn in line:
            line.remove(turn)
        if not line:
            del self._lines[model]
