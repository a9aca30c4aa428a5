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
    beside: int = 0
    """Replicas of the same model that hold memory on it, where those are to keep apart."""


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
    found: list[DeviceMemory] = []
    host: DeviceMemory | None = None
    for device, memory in zip(node.hardware.devices, free_memory(node, assigned), strict=True):
        if takes(device, engine, usable):
            found.append(memory)
        if memory.device_index == PROCESSOR and memory.vendor == "cpu":
            host = memory
    return NodeMemory(found, host)


def free_memory(node: NodeView, assigned: NodeAssignments) -> list[DeviceMemory]:
    """What is free on each of the node's devices, whatever engines can use them; in their order."""
    devices = node.hardware.devices if node.hardware is not None else ()
    claims, pressure, budget = assigned.claims, node.pressure, node.caps.vram_budget
    accelerated = any(device.vendor != "cpu" for device in devices) if budget else False
    shared = [d for d in devices if d.unified or d.vendor == "cpu"] if any(d.unified for d in devices) else []
    found: list[DeviceMemory] = []
    for device in devices:
        index, total, vendor = device.index, device.memory, device.vendor
        claimed, is_shared = claims.get(index, 0), bool(shared) and device in shared
        if is_shared:
            taken = sum(claims.get(each.index, 0) for each in shared)
            others = max(pressure.get(each.index, 0) for each in shared)
        else:
            taken, others = claimed, pressure.get(index, 0)
        free = total - taken - (others if vendor != "cpu" and not is_shared else max(reserved(device), others))
        bound, budgeted = device.budget, False
        if budget is not None and not (accelerated and vendor == "cpu"):
            bound = budget.of(total)
        if bound is not None:
            left = bound - claimed
            budgeted, free = left < free, min(left, free)
        found.append(DeviceMemory(index, vendor, total, free if free > 0 else 0, budgeted, is_shared))
    return found


def device_memory(
    node: NodeView, assigned: NodeAssignments, engine: EngineProfile, recipe: BackendRecipe | None = None
) -> list[DeviceMemory]:
    """The devices of `node_memory` alone."""
    return node_memory(node, assigned, engine, recipe).devices
