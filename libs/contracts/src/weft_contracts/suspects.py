"""Aggregates with a commit that can't be read: nothing is decided about them until an operator voids it.

A function of the log alone, so whoever reads the same log sets the same ones aside.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace

from weft_contracts.codec import WORKERS_KINDS
from weft_contracts.commit import Recorded
from weft_contracts.facts.fact import Fact, Unreadable, Voided
from weft_contracts.subjects import Aggregate

RUNS_SUSPECT = 100
"""Runs that are remembered: a worker may make any number of them."""
_SPECIAL: frozenset[type[Fact]] = frozenset((Unreadable, Voided))


class Suspects:
    """Those of a log that was read up to a place."""

    def __init__(self, marked: Iterable[tuple[Aggregate, int, str]] = ()) -> None:
        """`marked`: what `marks` said at an earlier place of the same log."""
        self._whys: dict[Aggregate, dict[int, str]] = {}
        self._runs: deque[Aggregate] = deque()
        """Oldest first."""
        for aggregate, sequence, why in marked:
            self._whys.setdefault(aggregate, {})[sequence] = why
            if aggregate.kind == "run":
                self._runs.append(aggregate)

    @property
    def why(self) -> Mapping[Aggregate, str]:
        """Each one, and why its first such commit can't be read."""
        return {aggregate: next(iter(whys.values())) for aggregate, whys in self._whys.items()}

    @property
    def marks(self) -> list[tuple[Aggregate, int, str]]:
        """All that this rests on: aggregate, sequence of the commit, why."""
        return [(aggregate, sequence, why) for aggregate, whys in self._whys.items() for sequence, why in whys.items()]

    def read(self, commit: Recorded) -> Recorded:
        """Note what a commit says of this; the commit without it. No fact may be left."""
        if _SPECIAL.isdisjoint(map(type, commit.facts)):
            return commit
        for fact in commit.facts:
            self.note(commit, fact)
        return replace(commit, facts=tuple(fact for fact in commit.facts if type(fact) not in _SPECIAL))

    def note(self, commit: Recorded, fact: Fact) -> bool:
        """Note one fact of a commit; whether its aggregate is set aside by it and wasn't before."""
        if isinstance(fact, Unreadable):
            return self._suspect(commit.aggregate, commit.sequence, fact.why)
        if isinstance(fact, Voided):
            self._void(commit.aggregate, fact.sequence)
        return False

    def _suspect(self, aggregate: Aggregate, sequence: int, why: str) -> bool:
        known = aggregate in self._whys
        if aggregate.kind not in WORKERS_KINDS:
            self._whys.setdefault(aggregate, {})[sequence] = why
            return not known
        self._whys[aggregate] = {sequence: why}  # the last one: a worker may write any number of them
        if aggregate.kind == "run" and not known:
            self._runs.append(aggregate)
            if len(self._runs) > RUNS_SUSPECT:
                self._whys.pop(self._runs.popleft(), None)
        return not known

    def _void(self, aggregate: Aggregate, sequence: int) -> None:
        whys = self._whys.get(aggregate)
        if whys is not None:
            whys.pop(sequence, None)
            if not whys:
                del self._whys[aggregate]
