"""One replica of a revision on a node, where the strategy is to spread, or each node is to have one."""

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand

_SPREAD = "the strategy is spread"


def apart(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node that runs a replica of this revision, when the strategy is `spread`, or each node is to have one.

    A retiring one does not count, nor does another revision's: a rollout may need the same nodes.
    """
    spec = demand.spec
    if not (spec.spread_all or spec.strategy == "spread") or demand.model not in assigned.models:
        return None
    for assignment in assigned.assignments.values():
        same = assignment.model == demand.model and assignment.revision == demand.revision
        if same and not assignment.retiring:
            return f"runs a replica of it already, and {'each node has one' if spec.spread_all else _SPREAD}"
    return None
