"""A plan on a mesh: a file's models on a copy of the mesh's own fleet, or its waiting replicas by another policy."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from weft_contracts.commit import Recorded
from weft_contracts.digest import revision_digest
from weft_contracts.facts.model import SpecAccepted
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import EventId, ModelId, NodeId
from weft_contracts.subjects import model
from weft_fleet import Fleet, NodeView

from weft_placement.candidate_ranking import CandidateRanking
from weft_placement.chosen_policy import chosen_policy
from weft_placement.claim import ClaimUnknown
from weft_placement.decide import demand_for
from weft_placement.device_memory import PROCESSOR
from weft_placement.eviction import give_room, hold_room, hold_rooms
from weft_placement.fleet_copy import copied
from weft_placement.plan.faults import PlanFault
from weft_placement.plan.fields import Fields
from weft_placement.plan.planning import one_placed, outcomes
from weft_placement.plan.reading import ROOT, WeightsOf, models_of, policies_of
from weft_placement.plan.results import Planned, Refused
from weft_placement.plan.told import ToldFleet, ToldGpu, ToldModel, ToldNode
from weft_placement.plan.told_fleet import CAUSE, PlanFleet, spec_of
from weft_placement.planned_fleet import PlannedFleet
from weft_placement.policy import BUILTIN_POLICIES, Policy, policy_made_of
from weft_placement.set_aside import SetAside

MOST_LIVE: Final = 256
"""Replicas that one plan on a mesh places: what plans is what serves."""
_OWN: Final = ("policies", "models")


def live_outcomes(
    fleet: Fleet,
    document: object,
    weights_of: WeightsOf,
    policy: str | None = None,
    set_aside: SetAside | None = None,
    *,
    now: float,
) -> Iterator[Planned | Refused]:
    """Replica by replica; the fleet isn't changed. Without a file (None) the mesh's own that wait, at most `MOST_LIVE`.

    `policy`: by name, one for all, in place of their own. `now`: seconds since the epoch; room that
    is kept until later for what waits is taken, but by that itself. Raises PlanFault, from the first step on.
    """
    copy, own = copied(fleet), _policies(fleet)
    root = Fields({} if document is None else document, "", ROOT)
    for name in ROOT:
        if name not in _OWN and root.has(name):
            raise PlanFault(name, "is of the mesh, whose own fleet this is planned on: leave it out")
    policies = {**own, **policies_of(root)}
    if policy is not None and policy not in policies:
        raise PlanFault("policy", f"{policy} is none: want one of {', '.join(policies)}")
    if document is None:
        yield from _waiting(copy, None if policy is None else policies[policy], set_aside or {}, now)
        return
    told = ToldFleet((), (), {}, models_of(root, _nodes(copy), weights_of, tuple(policies)), policies)
    asked = sum(len(copy.nodes) if each.replicas is None else each.replicas for each in told.models)
    if asked > MOST_LIVE:
        raise PlanFault("models", f"ask for {asked} replicas, and {MOST_LIVE} are planned at once on a mesh")
    default = copy.policy if copy.policy in policies else BUILTIN_POLICIES["balanced"].name
    yield from outcomes(_with_models(copy, told.models), told, policy, default, set_aside, now)


def _policies(fleet: Fleet) -> dict[str, Policy]:
    return {**BUILTIN_POLICIES, **{name: policy_made_of(told) for name, told in fleet.policies.items()}}


def _ids(fleet: Fleet) -> dict[str, NodeId]:
    return {node.name: node.id for node in fleet.nodes.values() if not node.removed}


def _numbers(node: NodeView) -> Mapping[int, int]:
    """How vendors count its accelerators, by the fold's index; where none tells, by their place."""
    devices = node.hardware.devices if node.hardware is not None else ()
    own = [device for device in devices if device.index != PROCESSOR]
    told = [place if device.number is None else device.number for place, device in enumerate(own)]
    numbers = told if len(set(told)) == len(told) else list(range(len(own)))
    return {device.index: number for device, number in zip(own, numbers, strict=True)}


def _nodes(fleet: Fleet) -> dict[str, ToldNode]:
    """The mesh's nodes as a file would tell them: by the names that models' fields may name."""
    found: dict[str, ToldNode] = {}
    for name, id in _ids(fleet).items():
        node = fleet.nodes[id]
        devices = {device.index: device for device in node.hardware.devices} if node.hardware is not None else {}
        gpus = tuple(
            ToldGpu(number, devices[index].vendor, devices[index].name, devices[index].memory, 0)
            for index, number in _numbers(node).items()
        )
        found[name] = ToldNode(name, node.labels, 0, 0, None, unified=False, gpus=gpus)
    return found


def _with_models(copy: Fleet, models: tuple[ToldModel, ...]) -> PlanFleet:
    """The copy with what the file asks for. One that the mesh has by this name keeps its replicas beside."""
    ids, specs = dict[str, ModelId](), {each.name: spec_of(place, each) for place, each in enumerate(models)}
    runs = dict[ModelId, int]()
    for place, each in enumerate(models):
        there = copy.model_named(each.name)
        id = ids[each.name] = there.id if there is not None else ModelId(f"m-plan-{place:06}")
        if there is not None:
            runs[id] = there.next_number - 1
            continue
        spec, sequence = specs[each.name], copy.position + 1
        accepted = SpecAccepted(name=each.name, revision=1, digest=revision_digest(spec), spec=spec)
        copy.apply(
            Recorded(sequence, model(id), (accepted,), EventId(f"e{sequence}"), CAUSE.correlation_id, None, "plan", 0.0)
        )
    return _plan_fleet(copy, ids, specs, runs)


def _plan_fleet(
    copy: Fleet, models: Mapping[str, ModelId], specs: Mapping[str, ModelSpec], runs: Mapping[ModelId, int]
) -> PlanFleet:
    nodes = _ids(copy)
    devices = {id: _numbers(copy.nodes[id]) for id in nodes.values()}
    return PlanFleet(copy, nodes, models, specs, devices, runs, recipes=copy.recipes)


def _waiting(copy: Fleet, policy: Policy | None, set_aside: SetAside, now: float) -> Iterator[Planned | Refused]:
    """The mesh's own replicas that have no place, the oldest first."""
    found, planned = _plan_fleet(copy, {}, {}, {}), PlannedFleet(copy)
    hold_rooms(planned, now)
    rankings: dict[tuple[ModelId, int], CandidateRanking | None] = {}
    for id in islice(copy.waiting, MOST_LIVE):
        view = copy.replicas[id]
        key, name = (view.model, view.revision), copy.models[view.model].name
        if key not in rankings:
            by = policy or chosen_policy(copy, copy.spec_of(view)[1])
            try:
                rankings[key] = CandidateRanking(demand_for(copy, view, by), by)
            except ClaimUnknown:
                rankings[key] = None
        ranking = rankings[key]
        if ranking is not None:
            give_room(planned, view)
            outcome = one_placed(found, planned, ranking, view, (name, view.number), set_aside)
            if isinstance(outcome, Refused):
                hold_room(planned, view, now)
            yield outcome
