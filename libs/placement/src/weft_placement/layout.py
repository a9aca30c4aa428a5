"""How a replica may lie on nodes of one class, and what their free memory must be for it: the ladder of `fit/`, as
numbers that hold for all of them.

Only where the numbers are the same on all: accelerators of one vendor and size, with memory of their own. Of other
classes each node is asked.
"""

from bisect import bisect_left
from dataclasses import dataclass

from weft_contracts.facts.values import Device
from weft_fleet import NodeView

from weft_placement.demand import Demand
from weft_placement.device_memory import PROCESSOR, takes, vendors_for
from weft_placement.fit import LADDER, one_device, several_devices
from weft_placement.fit.several_devices import layouts
from weft_placement.node_index import NodeRecord


@dataclass(frozen=True, slots=True)
class Level:
    """One way to lie: on so many devices, each with so much free at least."""

    rung: int
    devices: int
    free: int
    claim: int
    """Of each device."""
    on_host: bool = False
    """Whether it is the processor."""


@dataclass(frozen=True, slots=True)
class Layout:
    """All ways, the best first."""

    levels: tuple[Level, ...]
    beside: int
    """The least that must be free of the machine's memory; a node with less is asked itself."""
    processor: Level | None
    """The last way."""
    accelerators: tuple[Device, ...]
    """Those that it may lie on: all alike."""


def layout_on(node: NodeView, demand: Demand) -> Layout | None:
    """What holds for every node of this one's class; None: nothing does."""
    if node.hardware is None or demand.offloads or demand.chosen is not None or demand.spec.capability:
        return None
    devices, need = node.hardware.devices, demand.need
    usable = vendors_for(node, demand.profile, demand.recipe)
    accelerators = [each for each in devices if each.vendor != "cpu"]
    own = [each for each in accelerators if takes(each, demand.profile, usable)]
    hosts = [each for each in devices if each.vendor == "cpu"]
    alike = len({(each.vendor, each.memory) for each in accelerators}) <= 1 and len(own) in (0, len(accelerators))
    if not alike or any(each.unified for each in devices) or len(hosts) > 1:
        return None
    if any(each.index != PROCESSOR for each in hosts):
        return None
    levels: list[Level] = []
    if own:
        vendor, total = own[0].vendor, own[0].memory
        ways = [(0, 1, 1)] if one_device.ruled_out(demand) is None else []
        if several_devices.ruled_out(demand) is None:
            ways += [(1, tensor, stages) for tensor, stages in layouts(demand, len(own))]
        for rung, tensor, stages in ways:
            each = need.on_each(vendor, tensor, stages)
            claim = each if need.fraction is None else int(total * need.fraction)
            if claim >= each:
                levels.append(Level(rung, tensor * stages, claim, claim))
    processor = None
    may = need.place != "accelerator" and demand.processors and demand.spans <= 1
    if may and any(takes(each, demand.profile, usable) for each in hosts):
        if need.fraction is not None:
            return None  # a share of each machine's memory
        each = need.on_each("cpu", 1)
        processor = Level(len(LADDER) - 1, 1, each, each, on_host=True)
    beside = need.beside(len(own)) if hosts else 0
    return Layout(tuple(levels), beside, processor, tuple(own))


def by_level(layout: Layout, records: list[NodeRecord]) -> list[tuple[Level | None, list[NodeRecord]]]:
    """Nodes of one class by the first way that they hold; None: none. Ways that none of them holds are left out."""
    found: list[tuple[Level | None, list[NodeRecord]]] = []
    for level in layout.levels:
        last, least = -level.devices, level.free
        holding = [each for each in records if each.free[last] >= least]
        if holding:
            found.append((level, holding))
            records = [each for each in records if each.free[last] < least] if len(holding) < len(records) else []
    if records and (processor := layout.processor) is not None:
        holding = [each for each in records if each.host >= processor.free]
        if holding:
            found.append((processor, holding))
            records = [each for each in records if each.host < processor.free]
    return [*found, (None, records)] if records else found


def taken_of(level: Level, record: NodeRecord, fills: bool) -> tuple[int, ...]:
    """What is free of the devices that it would take there, the least first."""
    if level.on_host:
        return (record.host,)
    free = record.free
    start = bisect_left(free, level.free) if fills else len(free) - level.devices
    return free[start : start + level.devices]
