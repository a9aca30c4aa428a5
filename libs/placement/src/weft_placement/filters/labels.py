"""The selector's labels."""

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand


def labels(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node that lacks a wanted label, or bears one that the selector forbids by `!key`."""
    for key, value in demand.spec.selector.items():
        if key.startswith("!"):
            if key[1:] in node.labels:
                return f"bears the label {key[1:]}"
        elif node.labels.get(key) != value:
            return f"lacks the label {key}={value}"
    return None
