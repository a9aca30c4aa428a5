"""Selection of the endpoint that takes a request: filter, score, take the best, and say why the others are refused."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from weft_gateway.domain.routing.endpoint_state import EndpointState
from weft_gateway.domain.routing.filters import Filter

Scorer = Callable[[EndpointState], float]
"""How well an endpoint would do, from 0 to 1."""


def idleness(state: EndpointState) -> float:
    """1 for an endpoint with nothing running, then falling with each request."""
    return 1.0 / (1 + state.load)


def soundness(state: EndpointState) -> float:
    """0 for an endpoint whose node's lease is late, or whose node drains; 1 for all others."""
    return 1.0 if state.endpoint.preferred else 0.0


WEIGHTS: tuple[tuple[Scorer, float], ...] = ((soundness, 2.0), (idleness, 1.0))
"""A sound node counts more than any load: a late lease may be a node that is going."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen endpoint's state, or why there is none: the reason against each replica."""

    chosen: EndpointState | None
    refusals: dict[str, str] = field(default_factory=dict[str, str])


def score(state: EndpointState) -> float:
    """The weighted sum of all scorers."""
    return sum(weight * scorer(state) for scorer, weight in WEIGHTS)


def select(states: Iterable[EndpointState], filters: Sequence[Filter]) -> Selection:
    """The best score among those that no filter refuses; the least recently used on ties."""
    refusals: dict[str, str] = {}
    best: EndpointState | None = None
    best_rank = (0.0, 0.0)
    for state in states:
        for filter in filters:
            reason = filter(state)
            if reason is not None:
                refusals[state.endpoint.replica] = reason
                break
        else:
            rank = (score(state), -state.last_used)
            if best is None or rank > best_rank:
                best, best_rank = state, rank
    return Selection(best, refusals)
