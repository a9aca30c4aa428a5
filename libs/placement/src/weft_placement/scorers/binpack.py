"""Fill what is begun: large gaps stay for large models."""

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.fit.option import Option


def binpack(node: NodeView, assigned: NodeAssignments, demand: Demand, option: Option) -> float:
    """The share of what is free on the devices that the claim takes."""
    return option.part
