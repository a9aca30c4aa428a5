"""The fleet as it stood at some places of the log: a decision is computed again from the last of them before it."""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from weft_contracts.subjects import Aggregate
from weft_fleet import Fleet
from weft_placement.fleet_copy import copied

EVERY = 8_000
"""Commits between two of them."""
KEPT = 8
"""The newest ones stay. Each holds tables of its own, and shares with the others what didn't change."""
MOST_COMMITS = 10_000
"""What is further behind such a place is not computed again: to fold the log up to there takes longer than anybody
waits."""
SuspectMarks = Sequence[tuple[Aggregate, int, str]]


@dataclass(frozen=True, slots=True)
class FleetMark:
    """One place."""

    fleet: Fleet
    """Nobody changes it."""
    suspects: SuspectMarks
    """What `Suspects` are made of."""


Earlier = Callable[[int], Awaitable[FleetMark | None]]
"""The last place that a snapshot has which isn't behind a place of the log; None: there is none."""


async def no_snapshots(_: int) -> FleetMark | None:
    """Of who keeps none."""
    return None


BEGINNING = FleetMark(Fleet(), ())
"""Of the log."""


class FleetMarks:
    """Told after each batch that was folded. Cost: a copy of the tables every `EVERY` commits (`fleet_copy`)."""

    def __init__(
        self, earlier: Earlier = no_snapshots, *, every: int = EVERY, kept: int = KEPT, most: int = MOST_COMMITS
    ) -> None:
        """`earlier`: asked for what this process hasn't seen itself, or no longer has."""
        self._earlier = earlier
        self._every = every
        self._most = most
        self._marks: deque[FleetMark] = deque(maxlen=kept)

    def folded(self, fleet: Fleet, suspects: Callable[[], SuspectMarks]) -> None:
        """Note where the fleet stands, where the last note is far enough behind."""
        last = self._marks[-1].fleet.position if self._marks else 0
        if fleet.position - last >= self._every:
            self._marks.append(FleetMark(copied(fleet), tuple(suspects())))

    async def before(self, position: int, needed: int) -> FleetMark | None:
        """The last one that isn't behind a place of the log and near enough before another, up to which the log is
        needed: one of its own, the log's beginning, or a snapshot. None: there is none. Raises LogUnavailable."""
        own = next((mark for mark in reversed(self._marks) if mark.fleet.position <= position), BEGINNING)
        if needed - own.fleet.position <= self._most:
            return own
        found = await self._earlier(position)
        return found if found is not None and needed - found.fleet.position <= self._most else None
