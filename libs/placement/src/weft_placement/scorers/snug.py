"""The smallest devices that hold it: larger ones stay whole for larger models."""

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.fit.option import Option


def snug(node: NodeView, assigned: NodeAssignments, demand: Demand, option: Option) -> float:
    """The share of a device's whole memory that the claim takes, the largest of its devices."""
    return option.of_whole
