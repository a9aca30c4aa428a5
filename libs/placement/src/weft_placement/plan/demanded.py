"""What a plan's model asks of a node: as its spec would in a mesh, and what the file alone can say."""

from dataclasses import replace

from weft_contracts.ids import NodeId

from weft_placement.claim import ClaimUnknown, Need, offloads_of
from weft_placement.demand import Demand, demand_of
from weft_placement.plan.faults import PlanFault
from weft_placement.plan.told import ToldModel, ToldNeed
from weft_placement.plan.told_fleet import PlanFleet
from weft_placement.policy import Policy


def demand_told(found: PlanFleet, told: ToldModel, policy: Policy) -> Demand:
    """The demand. Raises PlanFault where the file doesn't say enough to compute a claim."""
    spec, profiles = found.specs[told.name], found.fleet.engines
    outright = None if told.need is None else _outright(told.need, told)
    try:
        demand = demand_of(found.models[told.name], 1, spec, policy, profiles, found.recipes, outright)
        offloads = offloads_of(spec, demand.profile) if outright is None and told.cpu_offload is not False else ()
    except ClaimUnknown as error:
        raise PlanFault(told.where, str(error)) from None
    several = told.gpus is not None and len(told.gpus) > 1
    return replace(
        demand,
        need=demand.need if told.utilization is None else replace(demand.need, fraction=told.utilization),
        devices=told.devices,
        stages=told.stages,
        wished=told.wished,
        chosen=_chosen(found, told),
        by_hand=told.by_hand,
        groups=(demand.groups or several) if told.distributed is None else told.distributed,
        preferred=frozenset(found.nodes[id] for id in told.preferred),
        vocabulary=told.vocabulary,
        offloads=offloads,
        processors=told.cpu_offload is not False,
    )


def _outright(need: ToldNeed, told: ToldModel) -> Need:
    """On accelerators, which share it evenly, with so much of the machine's memory beside; or on a processor."""
    if not need.vram:
        return Need(need.ram, 0, 0, place="processor")
    return Need(need.vram, 0, 0, host=need.ram, place="accelerator", layers=told.weights.layers)


def _chosen(found: PlanFleet, told: ToldModel) -> dict[NodeId, frozenset[int]] | None:
    if told.gpus is None:
        return None
    return {found.nodes[id]: gpus for id, gpus in told.gpus.items()}
