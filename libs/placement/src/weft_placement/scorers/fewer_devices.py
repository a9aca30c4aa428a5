"""The fewer devices, the less they wait for one another."""

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.fit.option import Option


def fewer_devices(node: NodeView, assigned: NodeAssignments, demand: Demand, option: Option) -> float:
    """1 for one device, ½ for two, ⅓ for three."""
    return 1 / len(option.devices)
