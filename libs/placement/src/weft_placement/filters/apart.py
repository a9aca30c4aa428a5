"""One replica of a revision on a node, where the strategy is to spread."""

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand


def apart(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node that runs a replica of this revision, when the strategy is `spread`.

    A retiring one does not count, nor does another revision's: a rollout may need the same nodes.
    """
    if demand.spec.strategy != "spread" or demand.model not in assigned.models:
        return None
    for assignment in assigned.assignments.values():
        same = assignment.model == demand.model and assignment.revision == demand.revision
        if same and not assignment.retiring:
            return "runs a replica of it already, and the strategy is spread"
    return None
