"""Alive, and open to new replicas."""

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand


def schedulable(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node that is not healthy, or that is cut off, draining or cordoned."""
    if node.takes_replicas:
        return None
    if node.cut_off is not None:
        return f"is cut off: {node.cut_off}"
    if node.presence == "joined":
        return "was not heard yet"
    if node.draining:
        return "is draining"
    if node.presence == "healthy":
        return "is cordoned"
    return f"is {node.presence}"
