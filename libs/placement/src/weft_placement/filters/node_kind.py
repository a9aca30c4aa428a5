"""The kind of the node."""

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand


def node_kind(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node that runs no models."""
    return None if node.kind == "worker" else f"is of the kind {node.kind}, which runs no models"
