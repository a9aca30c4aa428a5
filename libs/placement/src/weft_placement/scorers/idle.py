"""Nodes that do little first."""

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.fit.option import Option


def idle(node: NodeView, assigned: NodeAssignments, demand: Demand, option: Option) -> float:
    """1 for a node without a replica, ½ with one, ⅓ with two, and so on."""
    return 1 / (1 + assigned.replicas)
