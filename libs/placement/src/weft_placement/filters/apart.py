"""One replica of a revision on a node, where the strategy is to spread."""

from weft_placement.demand import Demand
from weft_placement.fleet import Held, NodeView


def apart(node: NodeView, held: Held, demand: Demand) -> str | None:
    """Refuse a node that runs a replica of this revision, when the strategy is `spread`.

    A retiring one does not count, nor does another revision's: a rollout may need the same nodes.
    """
    if demand.spec.strategy != "spread" or demand.model not in held.models:
        return None
    for assignment in held.assignments.values():
        same = assignment.model == demand.model and assignment.revision == demand.revision
        if same and not assignment.retiring:
            return "runs a replica of it already, and the strategy is spread"
    return None
