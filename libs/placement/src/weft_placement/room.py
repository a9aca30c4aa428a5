"""What is free on a node's devices: total − claims − what others use, within the node's VRAM budget.

Others use what the agent measured (pressure), and at least what is reserved for them: the measure of a processor's
memory counts the operating system and the services beside the engines too, which the reserve stands for.
"""

from typing import NamedTuple

from weft_contracts.facts.values import Device, EngineName, Vendor

from weft_placement.fleet import Held, NodeView

RESERVED_SHARE = 0.1
"""Of a processor's memory: the operating system, the agent and the services beside it."""
RESERVED_BYTES = 256 << 20
"""Of a processor's memory at least. Accelerators keep nothing back: their claims count the overhead."""


class Room(NamedTuple):
    """One device with what is free on it, in bytes."""

    device: int
    vendor: Vendor
    total: int
    free: int
    budgeted: bool = False
    """Whether the node's VRAM budget is what leaves no more."""


def reserved(device: Device) -> int:
    """Bytes of a device that no replica may claim."""
    return max(int(device.memory * RESERVED_SHARE), RESERVED_BYTES) if device.vendor == "cpu" else 0


def vendors_for(node: NodeView, engine: EngineName) -> frozenset[Vendor]:
    """The vendors of devices that the node's backends of this engine can use."""
    return frozenset(v for backend in node.backends if backend.engine == engine for v in backend.vendors)


def rooms(node: NodeView, held: Held, engine: EngineName) -> list[Room]:
    """The node's devices that this engine can use, by index.

    A VRAM budget bounds accelerators; on a node that has none, its processor's memory.
    """
    if node.hardware is None:
        return []
    usable = vendors_for(node, engine)
    claims, pressure, budget = held.claims, node.pressure, node.caps.vram_budget
    accelerated = any(device.vendor != "cpu" for device in node.hardware.devices) if budget else False
    found: list[Room] = []
    for device in node.hardware.devices:
        if device.vendor in usable:
            index, total, claimed = device.index, device.memory, claims.get(device.index, 0)
            free = total - claimed - max(reserved(device), pressure.get(index, 0))
            budgeted = False
            if budget is not None and not (accelerated and device.vendor == "cpu"):
                left = budget.of(total) - claimed
                budgeted, free = left < free, min(left, free)
            found.append(Room(index, device.vendor, total, max(free, 0), budgeted))
    return found
