"""The least set of replicas whose end gives another a place: the fewest, then the longest idle, then by their ids."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from weft_contracts.facts.values import Member
from weft_contracts.ids import ModelId, NodeId

from weft_placement.candidate_ranking import CandidateRanking
from weft_placement.decide import members_of
from weft_placement.demand import Demand
from weft_placement.eviction.endable import Endable
from weft_placement.eviction.sets import longest_idle_first
from weft_placement.group import Group
from weft_placement.node_evaluator import Candidate, NodeEvaluator, Rank
from weft_placement.planned_fleet import PlannedFleet
from weft_placement.policy import Policy

LOOKS = 8192
"""At a node without some of its replicas, that one search takes, whatever comes of them; after that it goes on from all
that might end."""
NODES_AFTER = 64
GROUP_ENDS = 32
"""Of what might end, that a search for room on several nodes takes up."""
Spare = Mapping[ModelId, int]
_Place = Callable[[NodeId, Sequence[Endable]], Candidate | None]
_Key = tuple[int, tuple[tuple[float, str], ...], Rank]


@dataclass(frozen=True, slots=True)
class LeastSet:
    """What ends, and what there is room for then."""

    ends: tuple[Endable, ...]
    """The longest idle first."""
    members: tuple[Member, ...]


def least_set(
    planned_fleet: PlannedFleet,
    demand: Demand,
    policy: Policy,
    endable: Sequence[Endable],
    spare: Spare,
    avoid: Collection[str] = (),
    ranking: CandidateRanking | None = None,
) -> LeastSet | None:
    """The least set on one node; where a replica may lie on several and none is enough, a set for those from which
    nothing can be left out. `spare`: how many of each model may end together. `ranking`: for this demand, in step with
    the planned fleet; without it every node is evaluated where the replica may lie on several."""
    if not endable:
        return None
    found = _on_one_node(planned_fleet, NodeEvaluator(demand, policy), endable, spare, avoid)
    if found is None and demand.groups:
        beside = CandidateRanking(demand, policy) if ranking is None else ranking.fork()
        found = _over_nodes(planned_fleet, beside, endable, spare, avoid)
    return found


def _on_one_node(
    planned_fleet: PlannedFleet,
    evaluator: NodeEvaluator,
    endable: Sequence[Endable],
    spare: Spare,
    avoid: Collection[str],
) -> LeastSet | None:
    by_node: dict[NodeId, list[Endable]] = {}
    for each in sorted(endable, key=lambda each: each.rank):
        for member in each.replica.members:
            if member.node not in avoid and member.node in planned_fleet.fleet.nodes:
                by_node.setdefault(member.node, []).append(each)

    def place(id: NodeId, ends: Sequence[Endable]) -> Candidate | None:
        assigned = planned_fleet.assigned(id)
        for each in ends:
            assigned = assigned.without(each.replica.id)
        found = evaluator.evaluate(planned_fleet.fleet.nodes[id], assigned)
        return found if isinstance(found, Candidate) else None

    looks = _Looks()
    left: dict[NodeId, list[Endable]] = {}
    for id, there in by_node.items():
        if not looks.take():
            return _from_all(left, spare, place)
        if place(id, there) is not None:
            left[id] = there
    for count in range(1, max((_most(there, spare) for there in left.values()), default=0) + 1):
        best: tuple[_Key, LeastSet] | None = None
        for id, there in left.items():
            for ends in longest_idle_first(there, count, _model_of, spare):
                if not looks.take():
                    return _from_all(left, spare, place)
                candidate = place(id, ends)
                if candidate is not None:
                    told = (_key(ends, candidate), LeastSet(tuple(ends), members_of(candidate)))
                    best = told if best is None else min(best, told, key=lambda each: each[0])
                    break
        if best is not None:
            return best[1]
    return None


@dataclass(slots=True)
class _Looks:
    """What is left of `LOOKS`."""

    left: int = field(default_factory=lambda: LOOKS)

    def take(self) -> bool:
        """Whether one more may be taken; it is then."""
        self.left -= 1
        return self.left >= 0


def _from_all(left: Mapping[NodeId, list[Endable]], spare: Spare, place: _Place) -> LeastSet | None:
    """Of each of the first nodes what can't be left out of all that might end there; the fewest of these."""
    found: list[tuple[_Key, LeastSet]] = []
    for id, there in list(left.items())[:NODES_AFTER]:
        ends = _at_most(there, spare)
        candidate = place(id, ends)
        if candidate is None:
            continue
        for each in reversed(ends):
            fewer = [other for other in ends if other is not each]
            without = place(id, fewer) if fewer else None
            if without is not None:
                ends, candidate = fewer, without
        found.append((_key(ends, candidate), LeastSet(tuple(ends), members_of(candidate))))
    return min(found, key=lambda each: each[0])[1] if found else None


def _over_nodes(
    planned_fleet: PlannedFleet,
    ranking: CandidateRanking,
    endable: Sequence[Endable],
    spare: Spare,
    avoid: Collection[str],
) -> LeastSet | None:
    """On a ranking of its own: from one look to the next only nodes of what ends are evaluated."""
    without, passed_over = planned_fleet.copy(), dict.fromkeys(avoid, "is passed over")

    def place() -> Group | None:
        ranking.sync(without)
        best = ranking.best(passed_over)
        return best if isinstance(best, Group) else None

    ends = _at_most(sorted(endable, key=lambda each: each.rank)[:GROUP_ENDS], spare)
    for each in ends:
        without.release(each.replica)
    found = place() if ends else None
    if found is None:
        return None
    for each in ends[::-1]:
        if len(ends) == 1:
            break
        without.restore(each.replica, planned_fleet)
        fewer = place()
        if fewer is None:
            without.release(each.replica)
        else:
            ends, found = [other for other in ends if other is not each], fewer
    return LeastSet(tuple(ends), members_of(found))


def _model_of(each: Endable) -> ModelId:
    return each.replica.model


def _most(there: Sequence[Endable], spare: Spare) -> int:
    """How many of these may end together."""
    return sum(min(number, spare.get(model, 0)) for model, number in Counter(map(_model_of, there)).items())


def _at_most(ranked: Sequence[Endable], spare: Spare) -> list[Endable]:
    """As many of each model as may end together, the longest idle first."""
    counted, found = Counter[ModelId](), list[Endable]()
    for each in ranked:
        if counted[each.replica.model] < spare.get(each.replica.model, 0):
            counted[each.replica.model] += 1
            found.append(each)
    return found


def _key(ends: Sequence[Endable], candidate: Candidate) -> _Key:
    """Sorts the fewest first, then the set whose least idle one is idle the longest, then the better place."""
    return (len(ends), tuple(sorted((each.rank for each in ends), reverse=True)), candidate.rank)
