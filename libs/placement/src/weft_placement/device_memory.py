"""What is free on a node's devices: total − claims − what others use, within the node's VRAM budget.

Others use what the agent measured (pressure), and at least what is reserved for them: the measure of a processor's
memory counts the operating system and the services beside the engines too, which the reserve stands for.
Devices that share the machine's memory share what is free of it; a device's budget bounds what is claimed on it.
"""

from collections.abc import Collection
from typing import NamedTuple

from weft_contracts.backends import BackendRecipe
from weft_contracts.engines import EngineProfile
from weft_contracts.facts.values import Device, Vendor
from weft_fleet import NodeAssignments, NodeView

from weft_placement.installable import installable, installed_for

RESERVED_SHARE = 0.1
"""The share of the machine's memory that is kept for the operating system, the agent and the services beside it."""
RESERVED_BYTES = 256 << 20
"""The least that is kept of the machine's memory. Accelerators with memory of their own keep nothing: claims count
overhead."""


class DeviceMemory(NamedTuple):
    """One device with what is free on it, in bytes."""

    device_index: int
    vendor: Vendor
    total: int
    free: int
    budgeted: bool = False
    """Whether the node's VRAM budget is what leaves no more."""
    shared: bool = False
    """Whether its memory is the machine's: what is free of one is free of the other."""


PROCESSOR = 0
"""The processor's index on every node. What is claimed on it is claimed of the machine's memory, also beside
accelerators."""


def reserved(device: Device) -> int:
    """Bytes of a device that no replica may claim."""
    if device.vendor != "cpu" and not device.unified:
        return 0
    return max(int(device.memory * RESERVED_SHARE), RESERVED_BYTES)


def vendors_for(node: NodeView, engine: EngineProfile, recipe: BackendRecipe | None = None) -> frozenset[Vendor]:
    """The vendors of devices that this engine can use on the node: where it is installed, and where it could be."""
    installed = installed_for(node, engine)
    if recipe is None or node.installs is None:
        return installed
    could = installable(node, engine, recipe)
    return installed if isinstance(could, str) else installed | could.keys()


def takes(device: Device, engine: EngineProfile, vendors: Collection[Vendor]) -> bool:
    """Whether an engine that can use these vendors' devices may be placed on this one."""
    return device.vendor in vendors and (not device.simulated or engine.made_up_devices)


class NodeMemory(NamedTuple):
    """What is free on a node, of the devices that an engine can use and of the machine's memory beside them."""

    devices: list[DeviceMemory]
    host: DeviceMemory | None
    """The processor's; None: the node reports none, and nothing is counted on it."""


def node_memory(
    node: NodeView, assigned: NodeAssignments, engine: EngineProfile, recipe: BackendRecipe | None = None
) -> NodeMemory:
    """What is free on the node: its devices that this engine can use, by index, and its processor's memory.

    A VRAM budget bounds accelerators; on a node that has none, its processor's memory. A budget that an admin
    set stands over the worker's own, which the devices bear.
    """
    if node.hardware is None:
        return NodeMemory([], None)
    usable = vendors_for(node, engine, recipe)
    claims, pressure, budget = assigned.claims, node.pressure, node.caps.vram_budget
    devices = node.hardware.devices
    accelerated = any(device.vendor != "cpu" for device in devices) if budget else False
    shared = [d for d in devices if d.unified or d.vendor == "cpu"] if any(d.unified for d in devices) else []
    found: list[DeviceMemory] = []
    host: DeviceMemory | None = None
    for device in devices:
        is_host = device.vendor == "cpu" and device.index == PROCESSOR
        taken_by_engine = takes(device, engine, usable)
        if not taken_by_engine and not is_host:
            continue
        index, total = device.index, device.memory
        claimed = claims.get(index, 0)
        if device in shared:
            taken = sum(claims.get(each.index, 0) for each in shared)
            others = max(pressure.get(each.index, 0) for each in shared)
        else:
            taken, others = claimed, pressure.get(index, 0)
        free = total - taken - max(reserved(device), others)
        bound, budgeted = device.budget, False
        if budget is not None and not (accelerated and device.vendor == "cpu"):
            bound = budget.of(total)
        if bound is not None:
            left = bound - claimed
            budgeted, free = left < free, min(left, free)
        memory = DeviceMemory(index, device.vendor, total, max(free, 0), budgeted, device in shared)
        if taken_by_engine:
            found.append(memory)
        if is_host:
            host = memory
    return NodeMemory(found, host)


def device_memory(
    node: NodeView, assigned: NodeAssignments, engine: EngineProfile, recipe: BackendRecipe | None = None
) -> list[DeviceMemory]:
    """The devices of `node_memory` alone."""
    return node_memory(node, assigned, engine, recipe).devices
