"""What one node answers to one demand: a place with its score, or the reason for its no."""

from collections.abc import Mapping
from dataclasses import dataclass

from weft_contracts.facts.values import Candidate, DeviceClaim
from weft_contracts.ids import NodeId

from weft_placement.demand import Demand
from weft_placement.filters import FILTERS
from weft_placement.fit import LADDER
from weft_placement.fit.option import Miss
from weft_placement.fleet import Held, NodeView
from weft_placement.policy import Policy
from weft_placement.room import rooms
from weft_placement.scorers import score, weighted


@dataclass(frozen=True, slots=True)
class Offer:
    """A place on this node, on the lowest rung that holds the replica."""

    node: NodeId
    rung: int
    devices: tuple[DeviceClaim, ...]
    score: float
    scores: Mapping[str, float]
    missed: tuple[str, ...]
    """Why each lower rung was passed over."""

    @property
    def rank(self) -> tuple[int, float, int, NodeId]:
        """Sorts the best first: the lower rung, the higher score, fewer devices, the node's id."""
        return (self.rung, -self.score, len(self.devices), self.node)

    @property
    def candidate(self) -> Candidate:
        """As a receipt records it."""
        return Candidate(
            node=self.node,
            devices=tuple(device.index for device in self.devices),
            score=self.score,
            scores=dict(self.scores),
        )


@dataclass(frozen=True, slots=True)
class Refusal:
    """This node's no."""

    node: NodeId
    stage: int
    """How far it came: the number of filters passed."""
    reason: str
    free: int = 0
    """Bytes that were free where memory was what it lacked."""
    name: str = ""
    """The node's, for people."""


Verdict = Offer | Refusal


class Judge:
    """Asks single nodes about one demand under one policy. Cost: one node's devices and filters."""

    def __init__(self, demand: Demand, policy: Policy) -> None:
        self.demand = demand
        self._scorers = weighted(policy, demand.spec.strategy)

    def ask(self, node: NodeView, held: Held) -> Verdict:
        """The node's answer: filters in order, then the ladder, then the scores."""
        demand = self.demand
        for stage, passes in enumerate(FILTERS):
            reason = passes(node, held, demand)
            if reason is not None:
                return Refusal(node.id, stage, reason, name=node.name)
        there = rooms(node, held, demand.spec.engine)
        misses: list[Miss] = []
        for rung, (_, fit) in enumerate(LADDER):
            found = fit(there, demand)
            if isinstance(found, Miss):
                misses.append(found)
                continue
            total, scores = score(self._scorers, node, held, demand, found)
            missed = tuple(miss.reason for miss in misses)
            return Offer(node.id, rung, found.devices, total, scores, missed)
        misses = [miss for miss in misses if miss.applies] or misses
        return Refusal(node.id, len(FILTERS), misses[-1].reason, max(miss.free for miss in misses), node.name)
