"""The selector's labels."""

from collections.abc import Mapping

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand


def labels(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node that lacks a wanted label, or bears one that the selector forbids by `!key`."""
    return unmet(node.labels, demand.spec.selector)


def told_labels(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str:
    """What the node bears of the label that it is refused for; empty: nothing."""
    for key, value in demand.spec.selector.items():
        borne = node.labels.get(key.removeprefix("!"))
        if key.startswith("!") and borne is not None:
            return f"that is {borne}"
        if not key.startswith("!") and borne != value:
            return f"it bears {key}={borne}" if borne is not None else ""
    return ""


def unmet(borne: Mapping[str, str], selector: Mapping[str, str]) -> str | None:
    """What of a selector a node's labels don't meet."""
    for key, value in selector.items():
        if key.startswith("!"):
            if key[1:] in borne:
                return f"bears the label {key[1:]}"
        elif borne.get(key) != value:
            return f"lacks the label {key}={value}"
    return None
