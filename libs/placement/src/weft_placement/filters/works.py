"""The kind of the node."""

from weft_placement.demand import Demand
from weft_placement.fleet import Held, NodeView


def works(node: NodeView, held: Held, demand: Demand) -> str | None:
    """Refuse a node that runs no models."""
    return None if node.kind == "worker" else f"is of the kind {node.kind}, which runs no models"
