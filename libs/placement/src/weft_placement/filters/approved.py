"""Approval."""

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand


def approved(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node that no one has approved."""
    return None if node.approved else "is not approved"
