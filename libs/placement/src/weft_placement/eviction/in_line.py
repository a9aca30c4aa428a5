"""Whether a replica that waits could have a room that others would make for one that comes after it."""

from collections.abc import Callable, Collection

from weft_contracts.facts.eviction import EvictionPolicy, ModelUse
from weft_contracts.ids import ModelId, NodeId
from weft_fleet import ReplicaView

from weft_placement.candidate_ranking import CandidateRanking
from weft_placement.eviction.endable import endable_for, models_with_spare
from weft_placement.eviction.search import least_set
from weft_placement.eviction.uses import uses_of
from weft_placement.planned_fleet import PlannedFleet


def could_use(
    planned_fleet: PlannedFleet,
    waiting: ReplicaView,
    ranking: CandidateRanking,
    nodes: Collection[NodeId],
    rule: EvictionPolicy,
    use: Callable[[ModelId], ModelUse],
    now: float,
    avoid: Collection[str],
) -> bool:
    """Whether it would have a place on one of `nodes` if what may end for it there did, now or once time alone has
    passed: what is in use, or of unknown use, doesn't count. `now`: seconds since the epoch.

    `ranking`: its own, in step. Cost: a look at what runs on these nodes; for a replica that may lie on several nodes
    a whole search.
    """
    fleet, demand = planned_fleet.fleet, ranking.demand
    there = [each for id in nodes for each in fleet.assigned(id).assignments.values()]
    among = None if demand.groups else {each.model for each in there}
    spare = models_with_spare(fleet, waiting, among)
    if not spare:
        return False
    here = None if demand.groups else {each.replica for each in there}
    soon = [
        each
        for each in endable_for(fleet, waiting, uses_of(fleet, waiting, rule, use, among), now, among)
        if each.idle_s > 0 and (here is None or each.replica.id in here)
    ]
    found = least_set(planned_fleet, demand, ranking.policy, soon, spare, avoid, ranking)
    return found is not None and any(member.node in nodes for member in found.members)
