"""Places a plan's models in the file's order, each replica beside what is there and what was placed before it."""

from collections.abc import Iterator
from dataclasses import replace

from weft_contracts.facts.eviction import EvictionPolicy, ModelUse
from weft_contracts.facts.values import Member
from weft_contracts.ids import ModelId, replica_id
from weft_contracts.policies import DEFAULT_NAME
from weft_fleet import ReplicaView

from weft_placement.candidate_ranking import CandidateRanking
from weft_placement.decide import Circumstances, NoPlace, Placement, choose
from weft_placement.device_memory import PROCESSOR
from weft_placement.eviction import Eviction, decide_eviction, hold_rooms, uses_of
from weft_placement.filters.avoid import avoided
from weft_placement.fit import LADDER, SEVERAL_NODES
from weft_placement.group import Group
from weft_placement.plan.demanded import demand_told
from weft_placement.plan.refusing import refused
from weft_placement.plan.results import Plan, Planned, PlannedEnd, PlannedMember, Refused, plan_of_outcomes
from weft_placement.plan.told import ToldFleet, ToldModel
from weft_placement.plan.told_fleet import CAUSE, PlanFleet, end, fleet_of
from weft_placement.planned_fleet import PlannedFleet
from weft_placement.policy import Policy
from weft_placement.set_aside import SetAside

_GIVEN = Circumstances(now=1e9, seed=0)
"""Nothing in a plan hangs on time or chance; what runs has run for long."""


def planned(told: ToldFleet, policy: str | None = None) -> Plan:
    """Where each replica would go, or why nowhere. `policy`: one for all models, in place of their own.

    Raises PlanFault where a model doesn't say enough.
    """
    return plan_of_outcomes(outcomes(fleet_of(told), told, policy))


def outcomes(
    found: PlanFleet,
    told: ToldFleet,
    policy: str | None = None,
    default: str = DEFAULT_NAME,
    set_aside: SetAside | None = None,
    now: float = 0.0,
) -> Iterator[Planned | Refused]:
    """Replica by replica, each beside those before it. `default`: of models that name no policy; `set_aside`: nodes
    that nothing is placed on; `now`: seconds since the epoch, room that is kept until later is taken. Raises PlanFault.
    """
    planned_fleet = PlannedFleet(found.fleet)
    hold_rooms(planned_fleet, now)
    for model in told.models:
        by = told.policies[policy or model.policy or default]
        yield from _placed(found, planned_fleet, model, by, set_aside or {})


def _placed(
    found: PlanFleet, planned_fleet: PlannedFleet, told: ToldModel, policy: Policy, set_aside: SetAside
) -> Iterator[Planned | Refused]:
    ranking = CandidateRanking(demand_told(found, told, policy), policy)
    id = found.models[told.name]
    there = found.runs.get(id, 0)
    for number in range(len(found.nodes) if told.replicas is None else told.replicas):
        replica = ReplicaView(
            id=replica_id(id, there + number + 1),
            model=id,
            revision=1,
            number=there + number + 1,
            digest=found.fleet.models[id].digest,
            cause=CAUSE,
        )
        outcome = one_placed(found, planned_fleet, ranking, replica, (told.name, number), set_aside)
        over = told.replicas is None and isinstance(outcome, Refused)  # each node that matches and has room has one
        if not over or not number:
            yield outcome
        if over:
            return


def one_placed(
    found: PlanFleet,
    planned_fleet: PlannedFleet,
    ranking: CandidateRanking,
    replica: ReplicaView,
    called: tuple[str, int],
    set_aside: SetAside,
) -> Planned | Refused:
    """One replica's place, which then counts as planned, or why it has none. `called`: its model and its number."""
    ranking.sync(planned_fleet)
    outcome, evicts = choose(found.fleet, replica, ranking, _GIVEN, set_aside), tuple[PlannedEnd, ...]()
    if isinstance(outcome, NoPlace) and found.idle_s:
        evicts = _room_made(found, planned_fleet, ranking, replica)
    if evicts:
        ranking.sync(planned_fleet)
        outcome = choose(found.fleet, replica, ranking, _GIVEN, set_aside)
    match outcome:
        case Placement() as placement:
            planned = _told(found, ranking, *called, placement, {**set_aside, **avoided(replica.avoid)})
            planned_fleet.plan(replica, placement.members, CAUSE)
            return replace(planned, evicts=evicts)
        case NoPlace(reason=reason):
            return refused(found, planned_fleet, ranking, called, reason)


def _room_made(
    found: PlanFleet, planned_fleet: PlannedFleet, ranking: CandidateRanking, waiting: ReplicaView
) -> tuple[PlannedEnd, ...]:
    """End what makes room for a replica without a place; what that was."""

    def use(model: ModelId) -> ModelUse:
        return ModelUse(model=model, known=True, idle_s=found.idle_s.get(model, 0.0))

    read = uses_of(found.fleet, waiting, EvictionPolicy(), use)
    made = decide_eviction(planned_fleet, waiting, ranking.demand, ranking.policy, read, _GIVEN, {})
    if not isinstance(made, Eviction):
        return ()
    ended: list[PlannedEnd] = []
    for id, fact in made.facts.items():
        view = found.fleet.replicas[id]
        nodes = tuple(found.name_of(member.node) for member in view.members)
        ended.append(PlannedEnd(found.fleet.models[view.model].name, view.number - 1, nodes))
        planned_fleet.release(view)
        end(found, id, fact)
    return tuple(ended)


def _told(
    found: PlanFleet, ranking: CandidateRanking, name: str, number: int, placement: Placement, set_aside: SetAside
) -> Planned:
    best = ranking.best(set_aside)
    assert best is not None
    return Planned(
        model=name,
        replica=number,
        rung=LADDER[SEVERAL_NODES if isinstance(best, Group) else best.rung].key,
        policy=ranking.policy.name,
        score=best.score,
        scores=best.scores,
        members=tuple(_member(found, member) for member in placement.members),
        layers=None if isinstance(best, Group) else best.layers,
        passed_over=placement.receipt.rungs,
    )


def _member(found: PlanFleet, member: Member) -> PlannedMember:
    numbers = found.devices[member.node]
    return PlannedMember(
        node=found.name_of(member.node),
        rank=member.rank,
        ram=sum(claim.bytes for claim in member.devices if claim.index == PROCESSOR),
        gpus={numbers[claim.index]: claim.bytes for claim in member.devices if claim.index != PROCESSOR},
    )
