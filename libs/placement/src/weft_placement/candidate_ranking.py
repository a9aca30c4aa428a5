"""All nodes' evaluations for one revision, the best candidates first, kept in step with the fleet.

A new ranking evaluates every node; after that only those that changed. So a decision costs what changed since the last
one, and never looks at the fleet's replicas.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from weft_contracts.ids import NodeId
from weft_fleet import Fleet

from weft_placement.demand import Demand
from weft_placement.fit import LADDER
from weft_placement.fit.option import gib
from weft_placement.node_evaluator import Candidate, Evaluation, NodeEvaluator, Rank, Refusal
from weft_placement.planned_fleet import PlannedFleet
from weft_placement.policy import Policy

_NONE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class NoCandidate:
    """No node can take a replica."""

    reason: str
    """A sentence for people, from the nearest miss."""
    refusals: Mapping[str, int]
    """How many nodes each reason turned away."""


class CandidateRanking:
    """All nodes' evaluations for one revision under one policy."""

    def __init__(self, demand: Demand, policy: Policy) -> None:
        self.demand = demand
        self.changes = 0
        """Goes up whenever an evaluation changes."""
        self._evaluator = NodeEvaluator(demand, policy)
        self._evaluations: dict[NodeId, Evaluation] = {}
        self._order: list[Rank] = []
        self._refusals: Counter[str] = Counter()
        self._position = -1
        self._planned_fleet: PlannedFleet | None = None
        self._seen = 0
        self._provisional: set[NodeId] = set()

    def sync(self, planned_fleet: PlannedFleet) -> None:
        """Evaluate the nodes again that changed since the last call, in the log or in the round's plans."""
        fleet = planned_fleet.fleet
        if self._position < 0:
            self._evaluate(fleet, planned_fleet, fleet.nodes)
        elif fleet.position > self._position:
            self._evaluate(fleet, planned_fleet, tuple(self._touched(fleet)))
        self._position = fleet.position
        if planned_fleet is not self._planned_fleet:
            self._evaluate(fleet, planned_fleet, tuple(self._provisional))
            self._provisional.clear()
            self._planned_fleet, self._seen = planned_fleet, 0
        if self._seen < len(planned_fleet.changes):
            changed = set(planned_fleet.changes[self._seen :])
            self._seen = len(planned_fleet.changes)
            self._provisional |= changed
            self._evaluate(fleet, planned_fleet, tuple(changed))

    def candidates(self, avoid: Mapping[str, str] = _NONE) -> Iterator[Candidate]:
        """Candidates, best first, without the nodes to avoid (each with the reason why)."""
        for rank in self._order:
            evaluation = self._evaluations[rank[-1]]
            if rank[-1] not in avoid and isinstance(evaluation, Candidate):
                yield evaluation

    def refusals(self, avoid: Mapping[str, str] = _NONE) -> dict[str, int]:
        """How many nodes each reason turned away, the most frequent first."""
        counts = Counter(self._refusals)
        for node, reason in avoid.items():
            evaluation = self._evaluations.get(NodeId(node))
            if evaluation is not None:
                counts[reason] += 1
                if isinstance(evaluation, Refusal):
                    counts[evaluation.reason] -= 1
        return dict(sorted((+counts).items(), key=lambda pair: (-pair[1], pair[0])))

    def rungs_below(self, rung: int, avoid: Mapping[str, str] = _NONE) -> tuple[str, ...]:
        """Why each rung under this one was passed over."""
        best = next(self.candidates(avoid), None)
        missed = best.missed if best is not None else ()
        return tuple(f"{LADDER[below][0]}: the best node {missed[below]}" for below in range(min(rung, len(missed))))

    def no_candidate(self, avoid: Mapping[str, str] = _NONE) -> NoCandidate:
        """Why there is no candidate: the refusals, and a sentence from the node that came nearest."""
        refusals = self.refusals(avoid)
        refused = [
            evaluation
            for node, evaluation in self._evaluations.items()
            if isinstance(evaluation, Refusal) and node not in avoid
        ]
        if refused:
            near = min(refused, key=lambda evaluation: (-evaluation.stage, -evaluation.free, evaluation.node))
            most = f" (at most {gib(near.free)})" if near.free else ""
            return NoCandidate(f"no node can take it; the nearest, {near.name}, {near.reason}{most}", refusals)
        if refusals:
            return NoCandidate(f"no node can take it; every node {next(iter(refusals))}", refusals)
        return NoCandidate("no node can take it; there is none", refusals)

    def evaluation(self, node: NodeId) -> Evaluation | None:
        """What a node answered; None where it is unknown or removed."""
        return self._evaluations.get(node)

    def _touched(self, fleet: Fleet) -> Iterator[NodeId]:
        for node, position in reversed(fleet.touched.items()):
            if position <= self._position:
                return
            yield node

    def _evaluate(self, fleet: Fleet, planned_fleet: PlannedFleet, nodes: Collection[NodeId]) -> None:
        for id in nodes:
            view = fleet.nodes.get(id)
            now = None if view is None or view.removed else self._evaluator.evaluate(view, planned_fleet.assigned(id))
            self._put(id, now)

    def _put(self, id: NodeId, now: Evaluation | None) -> None:
        before = self._evaluations.get(id)
        if now == before:
            return
        self.changes += 1
        match before:
            case Candidate():
                del self._order[bisect_left(self._order, before.rank)]
            case Refusal(reason=reason):
                self._refusals[reason] -= 1
                if not self._refusals[reason]:
                    del self._refusals[reason]
            case None:
                pass
        match now:
            case Candidate():
                insort(self._order, now.rank)
                self._evaluations[id] = now
            case Refusal(reason=reason):
                self._refusals[reason] += 1
                self._evaluations[id] = now
            case None:
                self._evaluations.pop(id, None)
