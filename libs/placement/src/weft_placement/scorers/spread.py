"""Keep away from others: of the same model first, and of all."""

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.fit.option import Option


def spread(node: NodeView, assigned: NodeAssignments, demand: Demand, option: Option) -> float:
    """The share of what is free that stays free, halved by each replica of the same model there."""
    return (1 - option.part) / (1 + assigned.models.get(demand.model, 0))
