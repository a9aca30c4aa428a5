"""Scorers, each 0..1, and the weights that a policy gives them."""

from collections.abc import Callable, Mapping

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.fit.option import Option
from weft_placement.policy import Policy
from weft_placement.scorers.binpack import binpack
from weft_placement.scorers.fewer_devices import fewer_devices
from weft_placement.scorers.files_there import files_there
from weft_placement.scorers.idle import idle
from weft_placement.scorers.snug import snug
from weft_placement.scorers.spread import spread

Scorer = Callable[[NodeView, NodeAssignments, Demand, Option], float]

SCORED_AT_ONCE = frozenset({"idle", "binpack", "spread", "snug", "files", "devices"})
"""Scorers whose figures are computed for many nodes at once, too (`estimate.py`)."""


def weighted(policy: Policy, strategy: str) -> tuple[tuple[str, Scorer, float], ...]:
    """Name, scorer and weight; the weights add up to 1.

    `strategy`: the model's own. A policy from before they had names goes by it: to pack and to prefer the idle
    excluded each other there, so `idle` counted only where the model spread.
    """
    chosen: tuple[tuple[str, Scorer, float], ...] = (
        ("idle", idle, 0.0 if policy.pack and strategy == "binpack" else policy.idle),
        ("binpack", binpack, policy.pack if strategy == "binpack" and policy.pack else policy.binpack),
        ("spread", spread, policy.pack if strategy == "spread" and policy.pack else policy.spread),
        ("snug", snug, policy.snug),
        ("files", files_there, policy.files),
        ("devices", fewer_devices, policy.devices),
    )
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
