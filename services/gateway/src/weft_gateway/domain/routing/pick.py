"""Filter, score, pick: the lane that takes a request, and why the others do not."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from weft_gateway.domain.routing.filters import Filter
from weft_gateway.domain.routing.lane import Lane
from weft_gateway.domain.routing.scorers import idleness, soundness

Scorer = Callable[[Lane], float]
WEIGHTS: tuple[tuple[Scorer, float], ...] = ((soundness, 2.0), (idleness, 1.0))
"""A sound node counts more than any load: a late lease may be a node that is going."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A lane, or why there is none: each replica's reason."""

    lane: Lane | None
    refusals: dict[str, str] = field(default_factory=dict[str, str])


def score(lane: Lane) -> float:
    """The weighted sum of all scorers."""
    return sum(weight * scorer(lane) for scorer, weight in WEIGHTS)


def choose(lanes: Iterable[Lane], filters: Sequence[Filter]) -> Choice:
    """The best score among those that no filter refuses; the least recently used on ties."""
    refusals: dict[str, str] = {}
    best: Lane | None = None
    best_rank = (0.0, 0.0)
    for lane in lanes:
        for filter in filters:
            reason = filter(lane)
            if reason is not None:
                refusals[lane.target.replica] = reason
                break
        else:
            rank = (score(lane), -lane.last_used)
            if best is None or rank > best_rank:
                best, best_rank = lane, rank
    return Choice(best, refusals)
