"""How a replica may lie on nodes of one class, and what their free memory must be for it: the ladder of `fit/`, as
numbers that hold for all of them.

Only where the numbers are the same on all: accelerators of one vendor and size, with memory of their own. Of other
classes each node is asked.
"""

from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass

from weft_contracts.facts.values import Device
from weft_fleet import NodeView

from weft_placement.crowd_members import CrowdRest, Order
from weft_placement.demand import Demand
from weft_placement.device_memory import PROCESSOR, takes, vendors_for
from weft_placement.fit import LADDER, one_device, several_devices
from weft_placement.fit.several_devices import layouts
from weft_placement.node_record import NodeRecord


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

    def held_by(self, records: Collection[NodeRecord]) -> list[NodeRecord]:
        """Those that hold it. Cost: a look at each."""
        least, last = self.free, -self.devices
        if self.on_host:
            return [each for each in records if each.host >= least]
        return [each for each in records if each.free[last] >= least]

    def missed_by(self, records: Collection[NodeRecord]) -> list[NodeRecord]:
        """Those that don't hold it. Cost: a look at each."""
        least, last = self.free, -self.devices
        if self.on_host:
            return [each for each in records if each.host < least]
        return [each for each in records if each.free[last] < least]


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


def first_held(layout: Layout, rest: CrowdRest) -> tuple[int, list[NodeRecord]]:
    """The place of the first way that any of a crowd's nodes holds, or the number of ways; and those that don't hold
    it. Cost: a look at these."""
    for place, level in enumerate(layout.levels):
        order = Order("free", level.devices)
        if rest.last(order).free[-level.devices] >= level.free:
            return place, rest.below(order, level.free)
    return len(layout.levels), list(rest)


def by_level(layout: Layout, records: list[NodeRecord], start: int) -> list[tuple[Level | None, list[NodeRecord]]]:
    """Nodes of one class by the first way that they hold, of those from `start` on; None: none. Ways that none of them
    holds are left out."""
    found: list[tuple[Level | None, list[NodeRecord]]] = []
    ways = layout.levels[start:] if layout.processor is None else (*layout.levels[start:], layout.processor)
    for level in ways:
        holding = level.held_by(records) if records else []
        if holding:
            found.append((level, holding))
            records = level.missed_by(records) if len(holding) < len(records) else []
    return [*found, (None, records)] if records else found


def taken_of(level: Level, record: NodeRecord, fills: bool) -> tuple[int, ...]:
    """What is free of the devices that it would take there, the least first."""
    if level.on_host:
        return (record.host,)
    free = record.free
    start = bisect_left(free, level.free) if fills else len(free) - level.devices
    return free[start : start + level.devices]
