"""What all nodes answer to a demand that nobody asked them before, without asking each of them.

Nodes of a class answer alike, so a filter that reads no more than that is asked once for all of them; where a replica
fits, and how a node scores, is compared as numbers (`layout.py`). Only the nodes that come first are evaluated in
full, and those of which something else is known: that they hold the model, or are planned for. The answer is the same
as if each had been asked, counts and reasons too: a property test compares them.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator

from weft_contracts.ids import NodeId

from weft_placement.best_first import BestFirst
from weft_placement.class_answer import ClassAnswer, class_answer
from weft_placement.crowd_members import CrowdRest, Order
from weft_placement.crowd_walk import CrowdWalk
from weft_placement.demand import Demand
from weft_placement.estimate import Estimate
from weft_placement.filters import FILTERS, Filter
from weft_placement.filters.disk import disk, room_for
from weft_placement.fit import SEVERAL_NODES
from weft_placement.group_offers import GroupOffers
from weft_placement.group_search import GroupSearch
from weft_placement.layout import Level, by_level, first_held
from weft_placement.level_scores import LevelScores
from weft_placement.node_evaluator import Candidate, Evaluation, NodeEvaluator, Refusal
from weft_placement.node_index import NodeIndex
from weft_placement.node_record import Crowd, NodeClass, NodeRecord
from weft_placement.planned_fleet import PlannedFleet
from weft_placement.policy import Policy
from weft_placement.told_files import Telling, told_files
from weft_placement.zones import Zones

Place = tuple[bool, float, int, float, int, float, int, NodeId]
"""A candidate's rank with its zone's replicas in it, as `CandidateRanking` orders."""
_Tier = tuple[bool, float, int, float, int]
"""All of it that candidates which nothing tells apart but their score share."""


class NotAlike(Exception):
    """A node answers otherwise than others of its class: each has to be asked."""


class FirstLook:
    """All answers at one moment: of the planned fleet as it is when this is made."""

    def __init__(self, evaluator: NodeEvaluator, policy: Policy, planned: PlannedFleet, index: NodeIndex) -> None:
        """`index`: in step with the planned fleet's fleet. Raises NotAlike."""
        self.refusals: Counter[str] = Counter()
        self._evaluator = evaluator
        self._demand: Demand = evaluator.demand
        self._planned, self._nodes = planned, planned.fleet.nodes
        self._zones = Zones(self._demand.model) if policy.apart == "zones" else None
        self._single: dict[NodeId, Evaluation] = {}
        """Nodes that were asked themselves and count as such."""
        self._known: dict[NodeId, Evaluation] = {}
        """Others that were evaluated."""
        self._refused: list[tuple[int, str, Collection[NodeRecord]]] = []
        self._pools: defaultdict[_Tier, BestFirst] = defaultdict(BestFirst)
        self._offers = GroupOffers(evaluator) if evaluator.demand.groups else None
        self._groups: GroupSearch | None = None
        self._kinds: dict[tuple[NodeClass, Telling], ClassAnswer] = {}
        self._look(index)
        self._listed: list[Candidate] = []
        self._following = self._in_order()

    def evaluation(self, id: NodeId) -> Evaluation | None:
        """What one node answers; None where it is unknown or removed."""
        view = self._nodes.get(id)
        if view is None or view.removed:
            return None
        known = self._single.get(id) or self._known.get(id)
        if known is None:
            known = self._known[id] = self._evaluator.evaluate(view, self._planned.assigned(id))
        return known

    def zone_of(self, id: NodeId) -> tuple[str, int]:
        """The node's zone, empty: it is in none; and how many replicas of the model that has."""
        if self._zones is None:
            return "", 0
        name = self._zones.zone_of(self._nodes[id])
        return name, self._zones.held_in(name)

    def candidates(self) -> Iterator[Candidate]:
        """The best first."""
        place = 0
        while True:
            if place == len(self._listed):
                following = next(self._following, None)
                if following is None:
                    return
                self._listed.append(following)
            yield self._listed[place]
            place += 1

    @property
    def groups(self) -> GroupSearch | None:
        """The search for a group among all nodes; None: it runs on one node."""
        if self._groups is None and self._offers is not None:
            self._groups = self._offers.search(self._single.values())
        return self._groups

    def _in_order(self) -> Iterator[Candidate]:
        single = sorted((self._place(each), each) for each in self._single.values() if isinstance(each, Candidate))
        return (candidate for _, candidate in heapq.merge(single, self._pooled(), key=lambda pair: pair[0]))

    def nearest(self, avoid: Callable[[NodeId], bool]) -> Refusal | None:
        """Of the nodes that refuse, the one that came farthest with the most room."""
        found = [each for id, each in self._single.items() if isinstance(each, Refusal) and not avoid(id)]
        groups = [(stage, [each for each in records if not avoid(each.id)]) for stage, _, records in self._refused]
        for stage, records in groups:
            if records:
                found += self._nearest_of(stage, records)
        return min(found, key=lambda each: (-each.stage, -each.free, each.node), default=None)

    def _nearest_of(self, stage: int, records: list[NodeRecord]) -> list[Refusal]:
        """Those of them of which one is nearest, whichever memory it is that counts."""
        if stage < len(FILTERS):
            ids = {min(each.id for each in records)}
        else:
            by: list[Callable[[NodeRecord], int]] = [lambda r: r.most, lambda r: sum(r.free), lambda r: r.host]
            ids = {min(records, key=lambda each, by=by: (-by(each), each.id)).id for by in by}
        return [each for each in map(self.evaluation, sorted(ids)) if isinstance(each, Refusal)]

    def _look(self, index: NodeIndex) -> None:
        demand = self._demand
        named = (*(demand.chosen or ()), *(demand.preferred if demand.groups else ()))
        apart = {*index.holders.get(demand.model, ()), *self._planned.changes, *named}
        self._ask(id for id in sorted(apart) if id in index.records)
        left_out: defaultdict[Crowd, set[NodeId]] = defaultdict(set)
        for id in self._single:
            left_out[index.records[id].crowd].add(id)
        tells = told_files(self._demand, index)
        for crowd, members in index.crowds.items():
            for telling, told in tells(CrowdRest(members, left_out.get(crowd, frozenset()))):
                if told:
                    self._look_at(crowd, telling, told)

    def _ask(self, ids: Iterable[NodeId]) -> None:
        """Ask these themselves."""
        for id in ids:
            view, assigned = self._nodes[id], self._planned.assigned(id)
            found = self._single[id] = self._evaluator.evaluate(view, assigned)
            if self._zones is not None:
                self._zones.follow(view, assigned)
            if isinstance(found, Refusal):
                self.refusals[found.reason] += 1

    def _look_at(self, crowd: Crowd, telling: Telling, records: Collection[NodeRecord]) -> None:
        """Nodes of one crowd that told the same of the demand's files."""
        records = self._with_room_to_install(records)
        if not records:
            return
        first = next(iter(records))
        kind = self._kinds.get((crowd.kind, telling))
        if kind is None:
            node, assigned = self._nodes[first.id], self._planned.assigned(first.id)
            kind = self._kinds[crowd.kind, telling] = class_answer(node, assigned, self._demand)
        steps: list[tuple[int, Filter | str]] = list(kind.asked)
        if kind.crowded is not None:
            stage, passes = kind.crowded
            reason = passes(self._nodes[first.id], self._planned.assigned(first.id), self._demand)
            if reason is not None:
                steps.append((stage, reason))
        if kind.refused is not None:
            steps.append(kind.refused)
        for stage, step in sorted(steps, key=lambda pair: pair[0]):
            if isinstance(step, str):
                self._refuse(stage, step, records)
                return
            records = self._passing(stage, step, records)
        if records:
            self._fit(crowd, kind, records)

    def _with_room_to_install(self, records: Collection[NodeRecord]) -> Collection[NodeRecord]:
        """Those whose disk has room for whatever the engine's recipe may make; the others are asked themselves."""
        recipe, first = self._demand.recipe, next(iter(records), None)
        installs = self._nodes[first.id].installs if first is not None else None
        if recipe is None or first is None or installs is None or first.install_disk is None:
            return records
        most = max((max(each.disk, installs.room.get(each.digest, 0)) for each in recipe.variants), default=0)
        return self._split(records, lambda each: each.install_disk is not None and each.install_disk >= most)

    def _passing(self, stage: int, passes: Filter, records: Collection[NodeRecord]) -> Collection[NodeRecord]:
        """Those that a filter lets pass that reads the whole node."""
        passed: list[NodeRecord] = []
        if passes is disk:
            needed = room_for(self._demand.file_bytes)
            if all(each.disk is None or each.disk >= needed for each in records):
                return records
        refused: dict[str, list[NodeRecord]] = {}
        nodes, assigned, demand = self._nodes, self._planned.assigned, self._demand
        for each in records:
            reason = passes(nodes[each.id], assigned(each.id), demand)
            if reason is None:
                passed.append(each)
            else:
                refused.setdefault(reason, []).append(each)
        for reason, turned_away in refused.items():
            self._refuse(stage, reason, turned_away)
        return passed

    def _refuse(self, stage: int, reason: str, records: Collection[NodeRecord]) -> None:
        self._refused.append((stage, reason, records))
        self.refusals[reason] += len(records)

    def _split(self, records: Collection[NodeRecord], alike: Callable[[NodeRecord], bool]) -> Collection[NodeRecord]:
        """Those that are alike; the others are asked themselves."""
        others = [each for each in records if not alike(each)]
        return self._without(records, others)

    def _without(self, records: Collection[NodeRecord], others: list[NodeRecord]) -> Collection[NodeRecord]:
        """The records but these, which are asked themselves."""
        if not others:
            return records
        self._ask(each.id for each in others)
        if isinstance(records, CrowdRest):
            return records.beside(others)
        asked = {each.id for each in others}
        return [each for each in records if each.id not in asked]

    def _fit(self, crowd: Crowd, kind: ClassAnswer, records: Collection[NodeRecord]) -> None:
        layout = kind.layout
        if layout is None:
            self._ask(each.id for each in records)
            return
        if layout.beside > 0:
            records = self._without(records, _with_less(records, layout.beside))
        if not records:
            return
        if self._offers is not None:
            first = next(iter(records)).id
            self._offers.add(layout, self._nodes[first], self._planned.assigned(first), records)
        start = 0
        if isinstance(records, CrowdRest):
            start, lacking = first_held(layout, records)
            if start < len(layout.levels):
                self._pool(crowd, kind, layout.levels[start], records)
            records, start = lacking, start + 1
        for level, those in by_level(layout, list(records), start):
            if level is None:
                self._refuse_for_room(kind, those)
            else:
                self._pool(crowd, kind, level, those)

    def _refuse_for_room(self, kind: ClassAnswer, records: list[NodeRecord]) -> None:
        ways = dict.fromkeys(each.budgeted for each in records)
        for budgeted in ways:
            those = records if len(ways) == 1 else [each for each in records if each.budgeted == budgeted]
            known = kind.reasons.get(budgeted)
            if known is None:
                refusal = self.evaluation(those[0].id)
                if not isinstance(refusal, Refusal):
                    raise NotAlike(those[0].id)
                known = kind.reasons[budgeted] = (refusal.stage, refusal.reason)
            self._refuse(*known, those)

    def _pool(self, crowd: Crowd, kind: ClassAnswer, level: Level, records: list[NodeRecord] | CrowdRest) -> None:
        """Candidates on one level: each of these, or those of a crowd that hold it."""
        sample = kind.samples.get(level)
        if sample is None:
            id = records.last(Order("free", level.devices)).id if isinstance(records, CrowdRest) else records[0].id
            found = self.evaluation(id)
            if not isinstance(found, Candidate) or found.rung != level.rung:
                raise NotAlike(id)
            sample = kind.samples[level] = found
        scores = LevelScores(self._evaluator.weights, sample, level, crowd.replicas, self._demand)
        held = self._zones.held_in(crowd.zone) if self._zones is not None else 0
        pool = self._pools[level.rung > SEVERAL_NODES, *sample.rank[1:2], held, sample.rank[2], level.rung]
        order = scores.order if isinstance(records, CrowdRest) else None
        if isinstance(records, CrowdRest) and order is not None:
            pool.walks.append(CrowdWalk(scores, order, records))
        else:
            pool.estimates.append(Estimate(scores, level.held_by(records)))

    def _pooled(self) -> Iterator[tuple[Place, Candidate]]:
        for tier in sorted(self._pools):
            for score, size, id in self._pools[tier].entries():
                candidate = self.evaluation(id)
                assert isinstance(candidate, Candidate)
                yield (*tier, score, size, id), candidate

    def _place(self, candidate: Candidate) -> Place:
        rank = candidate.rank
        return (*rank[:2], self.zone_of(candidate.node)[1], *rank[2:])


def _with_less(records: Collection[NodeRecord], least: int) -> list[NodeRecord]:
    """Those that have less of the machine's memory free."""
    if isinstance(records, CrowdRest):
        return records.below(Order("host"), least)
    return [each for each in records if each.host < least]
