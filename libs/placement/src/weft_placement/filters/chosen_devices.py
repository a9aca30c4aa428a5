"""Devices that somebody chose for a model, node by node."""

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.device_memory import DeviceMemory


def chosen_devices(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node none of whose devices is among those that were chosen."""
    if demand.chosen is None or node.id in demand.chosen:
        return None
    return "has none of the devices that were chosen for it"


def only_chosen(devices: list[DeviceMemory], node: NodeView, demand: Demand) -> list[DeviceMemory]:
    """Of a node's devices, those that were chosen."""
    if demand.chosen is None:
        return devices
    numbers = demand.chosen.get(node.id, frozenset())
    indexes = {index for index, number in numbered(node).items() if number in numbers}
    return [device for device in devices if device.device_index in indexes]


def numbered(node: NodeView) -> dict[int, int]:
    """How a node's accelerators are counted from 0, by their index: as its vendor counts each, or where its worker
    doesn't say that, in the order of their indexes."""
    devices = node.hardware.devices if node.hardware is not None else ()
    accelerators = sorted((each for each in devices if each.vendor != "cpu"), key=lambda each: each.index)
    return {each.index: place if each.number is None else each.number for place, each in enumerate(accelerators)}
