"""Fill what is begun: large gaps stay for large models."""

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.fit.option import Option


def binpack(node: NodeView, assigned: NodeAssignments, demand: Demand, option: Option) -> float:
    """How full the claim makes its devices, by `option.filling`."""
    return option.filled
