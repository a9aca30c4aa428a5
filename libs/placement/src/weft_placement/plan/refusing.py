"""Why a plan's replica has no place: by rung, by node with its own figures, and what it needs beside what there is."""

from collections.abc import Sequence

from weft_contracts.facts.values import Vendor
from weft_contracts.ids import NodeId

from weft_placement.candidate_ranking import CandidateRanking
from weft_placement.device_memory import PROCESSOR, DeviceMemory, node_memory
from weft_placement.filters.chosen_devices import only_chosen
from weft_placement.fit import LADDER, SEVERAL_NODES
from weft_placement.fit.option import gib
from weft_placement.node_evaluator import Refusal
from weft_placement.own_reasons import with_own
from weft_placement.plan.results import Refused
from weft_placement.plan.told_fleet import PlanFleet
from weft_placement.planned_fleet import PlannedFleet


def refused(
    found: PlanFleet, planned_fleet: PlannedFleet, ranking: CandidateRanking, called: tuple[str, int], reason: str
) -> Refused:
    """A replica without a place, as the ranking stands now. `called`: its model and its number."""
    evaluations = [(id, ranking.evaluation(id)) for id in found.nodes.values()]
    refusals = {id: each for id, each in evaluations if isinstance(each, Refusal)}
    devices = {
        id: _devices(planned_fleet, ranking, id) for id, refusal in refusals.items() if refusal.missed
    }  # of nodes that passed the filters
    need = ranking.demand.need
    on_processor = need.place == "processor" or not any(
        device.vendor != "cpu" for each in devices.values() for device in each
    )
    return Refused(
        model=called[0],
        replica=called[1],
        reason=reason,
        rungs=_rungs(ranking, list(refusals.values())),
        nodes={
            found.name_of(id): with_own(
                planned_fleet.fleet.nodes[id],
                planned_fleet.assigned(id),
                ranking.demand,
                _with_figures(found, ranking, refusal, devices.get(id, [])),
            )
            for id, refusal in refusals.items()
        },
        need=need.on_each("cpu" if on_processor else "nvidia", 1),
        available=_available(ranking, list(devices.values())),
    )


def _devices(planned_fleet: PlannedFleet, ranking: CandidateRanking, id: NodeId) -> list[DeviceMemory]:
    """The devices of a node that the replica might lie on."""
    demand, node = ranking.demand, planned_fleet.fleet.nodes[id]
    devices = node_memory(node, planned_fleet.assigned(id), demand.profile, demand.recipe).devices
    processors = demand.processors and demand.need.place != "accelerator"
    accelerators = demand.need.place != "processor"
    return [
        device
        for device in only_chosen(devices, node, demand)
        if (processors if device.vendor == "cpu" else accelerators)
    ]


def _rungs(ranking: CandidateRanking, refusals: Sequence[Refusal]) -> dict[str, str]:
    """Each rung's reason at the node that came nearest, and the fleet's for a group."""
    near = ranking.nearest()
    found: dict[str, str] = {}
    for place, rung in enumerate(LADDER):
        if place == SEVERAL_NODES:
            told = ranking.group()
            found[rung.key] = told if isinstance(told, str) else ""
        elif near is None:
            found[rung.key] = f"every node {refusals[0].reason}" if refusals else "there is no node"
            if len({refusal.reason for refusal in refusals}) > 1:
                found[rung.key] = "no node passed the filters"
        else:
            miss = near.missed[place]
            found[rung.key] = "" if miss is None else f"{near.name} {miss.reason}" if miss.applies else miss.reason
    return found


def _with_figures(
    found: PlanFleet, ranking: CandidateRanking, refusal: Refusal, devices: Sequence[DeviceMemory]
) -> str:
    """A node's reason, with how much it lacks for a replica on one device."""
    demand = ranking.demand
    if not refusal.missed or demand.spans > 1 or not devices:
        return refusal.reason
    need = demand.need
    short = [(need.on_each(device.vendor, 1) - need.most_of(device.total, device.free), device) for device in devices]
    least, device = min(short, key=lambda pair: (pair[0], pair[1].device_index))
    if least <= 0:
        return refusal.reason
    numbers = found.devices[refusal.node]
    where = "of memory" if device.device_index == PROCESSOR else f"on gpu {numbers[device.device_index]}"
    return f"{refusal.reason}; {gib(least)} short {where}"


def _available(ranking: CandidateRanking, nodes: Sequence[Sequence[DeviceMemory]]) -> int:
    """Of an engine that splits, what all devices of one vendor take together; else the most that one takes."""
    need, together = ranking.demand.need, "devices" in ranking.demand.profile.splits
    found: dict[Vendor, int] = {}
    for device in (device for devices in nodes for device in devices):
        most, before = need.most_of(device.total, device.free), found.get(device.vendor, 0)
        found[device.vendor] = before + most if together and device.vendor != "cpu" else max(before, most)
    return max(found.values(), default=0)
