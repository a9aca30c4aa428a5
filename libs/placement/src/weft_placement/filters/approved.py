"""Approval."""

from weft_placement.demand import Demand
from weft_placement.fleet import Held, NodeView


def approved(node: NodeView, held: Held, demand: Demand) -> str | None:
    """Refuse a node that no one has approved."""
    return None if node.approved else "is not approved"
