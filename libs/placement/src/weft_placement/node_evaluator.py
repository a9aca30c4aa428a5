"""What one node answers to one demand: that it is a candidate, with its score, or the reason for its no."""

from collections.abc import Mapping
from dataclasses import dataclass

from weft_contracts.facts import values
from weft_contracts.facts.values import DeviceClaim
from weft_contracts.ids import NodeId
from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.device_memory import node_memory
from weft_placement.filters import FILTERS
from weft_placement.fit import LADDER
from weft_placement.fit.option import Miss
from weft_placement.installable import lacks
from weft_placement.policy import Policy
from weft_placement.scorers import score, weighted
from weft_placement.scorers.apart import apart


@dataclass(frozen=True, slots=True)
class Candidate:
    """This node's yes: a place on it, on the lowest rung that holds the replica."""

    node: NodeId
    rung: int
    devices: tuple[DeviceClaim, ...]
    score: float
    scores: Mapping[str, float]
    missed: tuple[str, ...]
    """Why each lower rung was passed over."""
    host: DeviceClaim | None = None
    """What it claims of the machine's memory beside accelerators."""

    @property
    def claims(self) -> tuple[DeviceClaim, ...]:
        """All that a replica holds there: of the machine's memory, then of its devices."""
        return self.devices if self.host is None else (self.host, *self.devices)

    @property
    def rank(self) -> "Rank":
        """Sorts the best first: farther from others of the model, where the engine lies, the lower rung, the higher
        score, fewer devices, the node's id."""
        first = (-self.scores.get("apart", 1.0), -self.scores.get("installed", 1.0))
        return (*first, self.rung, -self.score, len(self.devices), self.node)

    @property
    def recorded(self) -> values.Candidate:
        """The candidate as a receipt records it."""
        return values.Candidate(
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
    """The node's name, for people."""


Evaluation = Candidate | Refusal
Rank = tuple[float, float, int, float, int, NodeId]


class NodeEvaluator:
    """Evaluates single nodes for one demand under one policy. Cost: one node's devices and filters."""

    def __init__(self, demand: Demand, policy: Policy) -> None:
        self.demand = demand
        self._scorers = weighted(policy, demand.spec.strategy)
        self._apart = policy.apart == "nodes"

    def evaluate(self, node: NodeView, assigned: NodeAssignments) -> Evaluation:
        """The node's answer: filters in order, then the ladder, then the scores."""
        demand = self.demand
        for stage, passes in enumerate(FILTERS):
            reason = passes(node, assigned, demand)
            if reason is not None:
                return Refusal(node.id, stage, reason, name=node.name)
        devices, host = node_memory(node, assigned, demand.profile, demand.recipe)
        misses: list[Miss] = []
        for rung, (_, fit) in enumerate(LADDER):
            found = fit(devices, demand, host)
            if isinstance(found, Miss):
                misses.append(found)
                continue
            total, scores = score(self._scorers, node, assigned, demand, found)
            taken = [device.index for device in found.devices]
            if lacks(node, demand.profile, demand.recipe, taken):
                scores = {"installed": 0.0, **scores}
            if self._apart:
                scores = {"apart": apart(assigned, demand), **scores}
            missed = tuple(miss.reason for miss in misses)
            return Candidate(node.id, rung, found.devices, total, scores, missed, found.host)
        misses = [miss for miss in misses if miss.applies] or misses
        return Refusal(node.id, len(FILTERS), misses[-1].reason, max(miss.free for miss in misses), node.name)
