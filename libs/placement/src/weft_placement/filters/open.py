"""Alive, and open to new replicas."""

from weft_placement.demand import Demand
from weft_placement.fleet import Held, NodeView


def open_to_replicas(node: NodeView, held: Held, demand: Demand) -> str | None:
    """Refuse a node that is not healthy, or that is draining or cordoned."""
    if node.takes_replicas:
        return None
    if node.presence == "joined":
        return "was not heard yet"
    if node.draining:
        return "is draining"
    if node.presence == "healthy":
        return "is cordoned"
    return f"is {node.presence}"
