"""What a spec asks of a device beyond its memory."""

from weft_contracts.capability import capable, told_capabilities
from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.device_memory import DeviceMemory


def device_capability(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node none of whose devices has what the spec asks for; what a device doesn't tell it has not."""
    wanted = demand.spec.capability
    if not wanted or _capable(node, demand):
        return None
    return f"has no device of {told_capabilities(wanted)}"


def told_devices(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str:
    """What the node's accelerators have."""
    devices = node.hardware.devices if node.hardware is not None else ()
    found = [f"{each.name} ({each.compute_capability or 'unknown'})" for each in devices if each.vendor != "cpu"]
    return f"it has {', '.join(dict.fromkeys(found))}" if found else "it has a processor alone"


def only_capable(devices: list[DeviceMemory], node: NodeView, demand: Demand) -> list[DeviceMemory]:
    """Of a node's devices, those that have what the spec asks for."""
    if not demand.spec.capability:
        return devices
    having = _capable(node, demand)
    return [device for device in devices if device.device_index in having]


def _capable(node: NodeView, demand: Demand) -> set[int]:
    devices = node.hardware.devices if node.hardware is not None else ()
    wanted = demand.spec.capability
    return {each.index for each in devices if capable(each.vendor, each.compute_capability, wanted)}
