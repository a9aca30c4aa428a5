"""One placement: the best candidate, or why there is none, with the receipt of the decision."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice

from weft_contracts.facts import values
from weft_contracts.facts.values import Member, Receipt
from weft_contracts.formats import lacking
from weft_contracts.ids import ReplicaId
from weft_fleet import Fleet, ReplicaView

from weft_placement.candidate_ranking import CandidateRanking
from weft_placement.claim import ClaimUnknown
from weft_placement.demand import Demand, demand_of
from weft_placement.filters.avoid import avoided
from weft_placement.group import Group
from weft_placement.kept_recipe import recipes_for
from weft_placement.node_evaluator import GROUPS_ARE_SAID_SINCE, Candidate
from weft_placement.passed_over import NoCandidate, no_candidate, rungs_below
from weft_placement.planned_fleet import PlannedFleet
from weft_placement.policy import Policy

CANDIDATES_KEPT = 8
REASONS_KEPT = 16
"""Reasons in a receipt; what is rarer is counted together."""
OTHER_REASONS = "refuses for another reason"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a replica goes."""

    replica: ReplicaId
    members: tuple[Member, ...]
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class NoPlace:
    """Why it goes nowhere now."""

    replica: ReplicaId
    reason: str
    """A sentence for people."""
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What reaches a decision from outside: time (seconds since the epoch) and a random seed."""

    now: float
    seed: int


def demand_for(fleet: Fleet, replica: ReplicaView, policy: Policy) -> Demand:
    """What the replica's revision asks of a node. Raises ClaimUnknown."""
    spec = fleet.spec_of(replica)[1]
    recipes = recipes_for(fleet, replica.model, replica.revision)
    demand = demand_of(replica.model, replica.revision, spec, policy, fleet.engines, recipes)
    return in_this_mesh(fleet, demand)


def in_this_mesh(fleet: Fleet, demand: Demand) -> Demand:
    """The demand without what may not be written yet: there are no groups before all of the mesh reads of them."""
    may = not demand.groups or not lacking(fleet.formats, GROUPS_ARE_SAID_SINCE)
    return demand if may else replace(demand, groups=False)


def decide_placement(fleet: Fleet, replica_id: ReplicaId, policy: Policy, now: float, seed: int) -> Placement | NoPlace:
    """Place one replica by evaluating every node once. Raises KeyError for an unknown replica.

    To decide often, keep a CandidateRanking and call `choose`.
    """
    replica = fleet.replicas[replica_id]
    given = Circumstances(now, seed)
    try:
        ranking = CandidateRanking(demand_for(fleet, replica, policy), policy)
    except ClaimUnknown as error:
        return no_place(fleet, replica, policy, given, NoCandidate(str(error), {}))
    planned_fleet = PlannedFleet(fleet)
    planned_fleet.release(replica)
    ranking.sync(planned_fleet)
    return choose(fleet, replica, ranking, given)


def choose(
    fleet: Fleet,
    replica: ReplicaView,
    ranking: CandidateRanking,
    given: Circumstances,
    set_aside: Mapping[str, str] | None = None,
) -> Placement | NoPlace:
    """The best place of a ranking that is in step with the fleet: a node, or a group of nodes where no node alone
    takes the replica on its accelerators.

    `set_aside` names nodes that must be passed over beside those that the replica avoids, and why.
    """
    avoid = {**(set_aside or {}), **avoided(replica.avoid)}
    best = ranking.best(avoid)
    if best is None:
        return no_place(fleet, replica, ranking.policy, given, no_candidate(ranking, avoid))
    if isinstance(best, Group):
        weighed = best.recorded
    else:
        weighed = tuple(each.recorded for each in islice(ranking.candidates(avoid), CANDIDATES_KEPT))
    rungs = rungs_below(ranking, best, avoid)
    told = receipt(fleet, replica, ranking.policy, given, ranking.refusals(avoid), weighed, rungs)
    return Placement(replica.id, members_of(best), told)


def members_of(best: Candidate | Group) -> tuple[Member, ...]:
    """What a replica holds there, node by node."""
    return best.members if isinstance(best, Group) else (Member(node=best.node, rank=0, devices=best.claims),)


def no_place(fleet: Fleet, replica: ReplicaView, policy: Policy, given: Circumstances, why: NoCandidate) -> NoPlace:
    """No place, with its receipt."""
    return NoPlace(replica.id, why.reason, receipt(fleet, replica, policy, given, why.refusals, ()))


def receipt(
    fleet: Fleet,
    replica: ReplicaView,
    policy: Policy,
    given: Circumstances,
    refusals: Mapping[str, int],
    weighed: tuple[values.Candidate, ...],
    rungs: tuple[str, ...] = (),
) -> Receipt:
    """The record of one decision. `weighed`: the best places, or all nodes of the group that was chosen."""
    return Receipt(
        position=fleet.position,
        policy=policy.text,
        policy_digest=policy.digest,
        seed=given.seed,
        trigger=replica.cause.causation_id or "",
        decided_at=given.now,
        refusals=few(refusals),
        candidates=weighed,
        rungs=rungs,
    )


def few(refusals: Mapping[str, int]) -> dict[str, int]:
    """The refusals as a receipt keeps them."""
    kept = dict(list(refusals.items())[:REASONS_KEPT])
    rest = sum(refusals.values()) - sum(kept.values())
    return {**kept, OTHER_REASONS: rest} if rest else kept
