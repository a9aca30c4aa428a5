"""All nodes' evaluations for one revision, the best candidates first, kept in step with the fleet.

A ranking that is asked often evaluates every node once, and after that only those that changed: a decision costs what
changed since the last one, and never looks at the fleet's replicas. A new one, on a fleet with an index, answers its
first questions from that (`first_look.py`), since most are asked no more.
"""

import heapq
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from weft_contracts.facts.values import Vendor
from weft_contracts.ids import NodeId
from weft_fleet import Fleet

from weft_placement.demand import Demand
from weft_placement.first_look import FirstLook, NotAlike
from weft_placement.fit import SEVERAL_NODES
from weft_placement.fit.option import Miss, Option
from weft_placement.group import Group
from weft_placement.group_search import GroupSearch
from weft_placement.node_evaluator import Candidate, Evaluation, NodeEvaluator, Rank, Refusal
from weft_placement.node_index import NodeIndex
from weft_placement.planned_fleet import PlannedFleet
from weft_placement.policy import Policy
from weft_placement.zones import Zones

_NONE: Mapping[str, str] = {}
_FIRST_LOOKS = 12
"""Answers from the index after which it pays to evaluate every node."""


class CandidateRanking:
    """All nodes' evaluations for one revision under one policy."""

    def __init__(self, demand: Demand, policy: Policy) -> None:
        self.demand = demand
        self.policy = policy
        self.changes = 0
        """Goes up whenever an evaluation changes."""
        self._evaluator = NodeEvaluator(demand, policy)
        self._evaluations: dict[NodeId, Evaluation] = {}
        self._zones = Zones(demand.model) if policy.apart == "zones" else None
        self._order: defaultdict[str, list[Rank]] = defaultdict(list)
        """The candidates' ranks by zone, the best first; without zones all under the empty name."""
        self._refusals: Counter[str] = Counter()
        self._position = -1
        self._planned_fleet: PlannedFleet | None = None
        self._seen = 0
        self._provisional: set[NodeId] = set()
        self._groups = GroupSearch(demand) if demand.groups else None
        self._whole = False
        """Whether every node was evaluated; till then `_first` answers."""
        self._first: FirstLook | None = None
        self._first_of: tuple[int, PlannedFleet | None, int] | None = None
        """The index's changes and the plans that it tells of."""
        self._firsts = 0
        self._found: tuple[frozenset[str], Group | str] | None = None
        """The last answer of a search for a group, and without which nodes; None: a node was looked at since."""

    def sync(self, planned_fleet: PlannedFleet) -> None:
        """Evaluate the nodes again that changed since the last call, in the log or in the round's plans."""
        fleet = planned_fleet.fleet
        if not self._whole:
            self._look_first(planned_fleet)
            return
        if fleet.position > self._position:
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

    def _look_first(self, planned_fleet: PlannedFleet) -> None:
        """Answer from the fleet's index, as often as that pays."""
        fleet, index, planned = planned_fleet.fleet, planned_fleet.index, len(planned_fleet.changes)
        if index is not None:
            index.follow(fleet)
            state = (index.changes, planned_fleet if planned else None, planned)
            if self._first is not None and state == self._first_of:
                return
            self._first_of = state
        self._planned_fleet, self._position, self._seen = planned_fleet, fleet.position, planned
        self._first = self._found = None
        self._firsts += 1
        if index is None or self._firsts > _FIRST_LOOKS or not self._pays(index):
            self._complete()
            return
        try:
            self._first = FirstLook(self._evaluator, self.policy, planned_fleet, index)
            self.changes += 1
        except NotAlike:
            self._complete()

    def _pays(self, index: NodeIndex) -> bool:
        """Whether most nodes need not be asked."""
        holders = len(index.holders.get(self.demand.model, ()))
        return self._evaluator.estimated and 2 * holders <= len(index.records)

    def _complete(self) -> None:
        """Evaluate every node."""
        planned = self._planned_fleet
        if self._whole or planned is None:
            return
        self._whole, self._first = True, None
        self._evaluate(planned.fleet, planned, planned.fleet.nodes)
        self._provisional |= set(planned.changes)

    def fork(self) -> "CandidateRanking":
        """One that goes on from here beside this one, for what is asked often of plans that are imagined. Every node
        is evaluated before, once for both."""
        self._complete()
        other = CandidateRanking(self.demand, self.policy)
        other._whole = self._whole
        other._position, other._planned_fleet, other._seen = self._position, self._planned_fleet, self._seen
        other._evaluations = dict(self._evaluations)
        other._order.update((zone, list(ranks)) for zone, ranks in self._order.items())
        other._refusals, other._provisional = Counter(self._refusals), set(self._provisional)
        other._zones = None if self._zones is None else self._zones.copy()
        if other._groups is not None:
            for id, evaluation in self._evaluations.items():
                other._groups.put(id, evaluation.offer)
        return other

    def candidates(self, avoid: Mapping[str, str] = _NONE) -> Iterator[Candidate]:
        """Candidates, best first, without the nodes to avoid (each with the reason why)."""
        if self._first is not None:
            first = self._first
            yield from (self._with_zone(each) for each in first.candidates() if each.node not in avoid)
            return
        for rank in self._ranks():
            evaluation = self._evaluations[rank[-1]]
            if rank[-1] not in avoid and isinstance(evaluation, Candidate):
                yield self._with_zone(evaluation)

    def best(self, avoid: Mapping[str, str] = _NONE) -> Candidate | Group | None:
        """Where a replica goes: on one node whole on its accelerators, else over several nodes, else partly or whole
        in a node's memory; None: nowhere."""
        first = next(self.candidates(avoid), None)
        if first is not None and first.rung < SEVERAL_NODES:
            return first
        found = self.group(avoid)
        return found if isinstance(found, Group) else first

    def group(self, avoid: Mapping[str, str] = _NONE) -> Group | str:
        """A place over several nodes, whatever single ones could take; or why there is none, a sentence without its
        subject."""
        groups = self._groups if self._first is None else self._first.groups
        if groups is None or self._planned_fleet is None:
            return f"{self.demand.profile.name} runs on one node"
        without = frozenset(avoid)
        if self._found is not None and self._found[0] == without:
            return self._found[1]
        planned, evaluator = self._planned_fleet, self._evaluator

        def fits(id: NodeId, vendor: Vendor, count: int, tensor: int, stages: int) -> Option | Miss:
            return evaluator.part(planned.fleet.nodes[id], planned.assigned(id), vendor, count, tensor, stages)

        parts = groups.find(without, fits)
        if isinstance(parts, str):
            found = parts
        else:
            found = evaluator.group([(planned.fleet.nodes[p.node], planned.assigned(p.node), p) for p in parts])
        self._found = (without, found)
        return found

    def refusals(self, avoid: Mapping[str, str] = _NONE) -> dict[str, int]:
        """How many nodes each reason turned away, the most frequent first."""
        counts = Counter(self._refusals if self._first is None else self._first.refusals)
        for node, reason in avoid.items():
            evaluation = self.evaluation(NodeId(node))
            if evaluation is not None:
                counts[reason] += 1
                if isinstance(evaluation, Refusal):
                    counts[evaluation.reason] -= 1
        return dict(sorted((+counts).items(), key=lambda pair: (-pair[1], pair[0])))

    def nearest(self) -> Refusal | None:
        """Of the nodes that passed the filters and can't take it, the one with the most room; None: there is none."""
        self._complete()
        refused = (each for each in self._evaluations.values() if isinstance(each, Refusal) and each.missed)
        return min(refused, key=lambda each: (-each.free, each.node), default=None)

    def came_nearest(self, avoid: Mapping[str, str] = _NONE) -> Refusal | None:
        """Of the nodes that refuse, without those to avoid, the one that came farthest with the most room; None: none
        does."""
        if self._first is not None:
            return self._first.nearest(lambda id: id in avoid)
        refused = (e for id, e in self._evaluations.items() if isinstance(e, Refusal) and id not in avoid)
        return min(refused, key=lambda each: (-each.stage, -each.free, each.node), default=None)

    def evaluation(self, node: NodeId) -> Evaluation | None:
        """What a node answered; None where it is unknown or removed."""
        if self._first is not None:
            return self._first.evaluation(node)
        return self._evaluations.get(node)

    def _ranks(self) -> Iterator[Rank]:
        """The best first: farther from others of the model, then of the zone with the fewest, then the rest."""
        zones = self._zones
        if zones is None or len(self._order) == 1:
            return (rank for order in self._order.values() for rank in order)
        return heapq.merge(
            *self._order.values(), key=lambda rank: (*rank[:2], zones.held_in_zone_of(rank[-1]), *rank[2:])
        )

    def _with_zone(self, candidate: Candidate) -> Candidate:
        if self._zones is None:
            return candidate
        if self._first is not None:
            name, held = self._first.zone_of(candidate.node)
        else:
            name, held = self._zones.name_of(candidate.node), self._zones.held_in_zone_of(candidate.node)
        if not name:
            return candidate
        first = {name: candidate.scores[name] for name in ("apart",) if name in candidate.scores}
        return replace(candidate, scores={**first, "zone": round(1 / (1 + held), 6), **candidate.scores})

    def _touched(self, fleet: Fleet) -> Iterator[NodeId]:
        for node, position in reversed(fleet.touched.items()):
            if position <= self._position:
                return
            yield node

    def _evaluate(self, fleet: Fleet, planned_fleet: PlannedFleet, nodes: Collection[NodeId]) -> None:
        self._found = None
        for id in nodes:
            view = fleet.nodes.get(id)
            if view is None or view.removed:
                was = "" if self._zones is None else self._zones.forget(id)
                self._put(id, None, was, "")
                continue
            assigned = planned_fleet.assigned(id)
            was, zone = ("", "") if self._zones is None else self._zones.follow(view, assigned)
            self._put(id, self._evaluator.evaluate(view, assigned), was, zone)

    def _put(self, id: NodeId, now: Evaluation | None, was: str, zone: str) -> None:
        """Take up an evaluation. `was`, `zone`: the node's zone before and now."""
        before = self._evaluations.get(id)
        if now == before and zone == was:
            return
        self.changes += 1
        if self._groups is not None:
            self._groups.put(id, None if now is None else now.offer)
        match before:
            case Candidate():
                order = self._order[was]
                del order[bisect_left(order, before.rank)]
                if not order:
                    del self._order[was]
            case Refusal(reason=reason):
                self._refusals[reason] -= 1
                if not self._refusals[reason]:
                    del self._refusals[reason]
            case None:
                pass
        match now:
            case Candidate():
                insort(self._order[zone], now.rank)
                self._evaluations[id] = now
            case Refusal(reason=reason):
                self._refusals[reason] += 1
                self._evaluations[id] = now
            case None:
                self._evaluations.pop(id, None)
