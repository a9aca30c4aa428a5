"""The version in which the assignment is written."""

from weft_contracts.formats import lacking
from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand


def formats(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node whose worker can't read an assignment of this spec."""
    if demand.spec.needs > 1 and lacking(node.reads, {"node.assigned": demand.spec.needs}):
        what = "LoRA adapters" if demand.spec.adapters else "lists and objects in engine_args"
        return f"has a worker of an earlier version, which can't read {what}"
    return None
