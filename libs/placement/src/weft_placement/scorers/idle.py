"""Nodes that do little first."""

from weft_placement.demand import Demand
from weft_placement.fit.option import Option
from weft_placement.fleet import Held, NodeView


def idle(node: NodeView, held: Held, demand: Demand, option: Option) -> float:
    """1 for a node without a replica, ½ with one, ⅓ with two, and so on."""
    return 1 / (1 + held.replicas)
