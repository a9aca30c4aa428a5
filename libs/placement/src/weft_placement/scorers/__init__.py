"""Scorers, each 0..1, and the weights that a policy gives them under a strategy."""

from collections.abc import Callable, Mapping
from typing import Literal

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.fit.option import Option
from weft_placement.policy import Policy
from weft_placement.scorers.binpack import binpack
from weft_placement.scorers.fewer_devices import fewer_devices
from weft_placement.scorers.files_there import files_there
from weft_placement.scorers.idle import idle
from weft_placement.scorers.spread import spread

Scorer = Callable[[NodeView, NodeAssignments, Demand, Option], float]


def weighted(policy: Policy, strategy: Literal["binpack", "spread"]) -> tuple[tuple[str, Scorer, float], ...]:
    """Name, scorer and weight; the weights add up to 1. To pack and to prefer the idle exclude each
    other, so `idle` counts only where the strategy spreads."""
    chosen: tuple[tuple[str, Scorer, float], ...] = (
        ("files", files_there, policy.files),
        ("devices", fewer_devices, policy.devices),
    )
    if strategy == "binpack":
        chosen = (("binpack", binpack, policy.pack), *chosen)
    else:
        chosen = (("idle", idle, policy.idle), ("spread", spread, policy.pack), *chosen)
    whole = sum(weight for _, _, weight in chosen) or 1.0
    return tuple((name, scorer, weight / whole) for name, scorer, weight in chosen if weight > 0)


def score(
    scorers: tuple[tuple[str, Scorer, float], ...],
    node: NodeView,
    assigned: NodeAssignments,
    demand: Demand,
    option: Option,
) -> tuple[float, Mapping[str, float]]:
    """The weighted sum, 0..1, and each scorer's own figure, rounded so that receipts stay readable."""
    scores = {name: round(scorer(node, assigned, demand, option), 6) for name, scorer, _ in scorers}
    return round(sum(scores[name] * weight for name, _, weight in scorers), 6), scores
