"""Choice among the models of an alias: how each could take a request now, and which of them gets it."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from weft_contracts.aliases import AliasRule
from weft_contracts.ids import ModelId

Readiness = Literal["free", "busy", "coming", "full", "away"]
"""`free`: a replica has room, and nobody waits for one; `busy`: the request may wait in line; `coming`: it may wait
until a replica is ready; `full`: its line is full, or its engine has no room; `away`: nothing comes by itself."""
SERVING: frozenset[Readiness] = frozenset({"free", "busy"})
HOPEFUL: frozenset[Readiness] = frozenset({"free", "busy", "coming"})
_RANKS: Mapping[AliasRule, Mapping[Readiness, int]] = {
    "order": {"free": 0, "busy": 1, "coming": 2, "full": 3, "away": 4},
    # A share is a share: whoever can serve keeps its own, though it may have to wait for a moment.
    "weights": {"free": 0, "busy": 0, "coming": 1, "full": 2, "away": 3},
}


class Target(NamedTuple):
    """A model that an alias stands for and that can serve the request, by what it is asked for."""

    model: ModelId
    weight: int
    readiness: Readiness


def choose(rule: AliasRule, targets: Sequence[Target], draw: float, current: ModelId | None = None) -> Target:
    """The target that takes a request: of those in the best condition the first, or one drawn by weight.

    `targets` in their order, at least one; `draw` from 0 to below 1. `current`: where the request waits already; it
    stays unless another is in a better condition.
    """
    ranks = _RANKS[rule]
    best = min(ranks[target.readiness] for target in targets)
    able = [target for target in targets if ranks[target.readiness] == best]
    staying = next((target for target in able if target.model == current), None)
    if staying is not None:
        return staying
    return able[0] if rule == "order" else _drawn(able, draw)


def _drawn(targets: Sequence[Target], draw: float) -> Target:
    left = draw * sum(target.weight for target in targets)
    for target in targets:
        left -= target.weight
        if left < 0:
            return target
    return targets[-1]  # a draw just below 1 may be rounded up
