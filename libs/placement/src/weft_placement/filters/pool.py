"""Nodes that are kept for some models: those that bear the label `pool`."""

from typing import Final

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand

POOL: Final = "pool"
"""The label."""


def pool(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node of a pool to a model whose selector says nothing of pools; where it does, that counts as any
    label."""
    selector = demand.spec.selector
    if POOL not in node.labels or POOL in selector or f"!{POOL}" in selector:
        return None
    return f"is kept for models whose selector names its {POOL}"


def told_pool(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str:
    """The node's own."""
    return f"that is {node.labels.get(POOL, '')}"
