"""No more replicas of one model than a node is allowed."""

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand


def told_cap(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str:
    """The node's cap."""
    return f"that is {node.caps.replicas_per_model}"


def per_model(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node that runs as many replicas of this revision as its cap allows.

    A retiring one does not count, nor does another revision's: else a rollout would wait for room that only its own
    end makes.
    """
    most = node.caps.replicas_per_model
    if not most or assigned.models.get(demand.model, 0) < most:
        return None
    there = sum(
        assignment.model == demand.model and assignment.revision == demand.revision and not assignment.retiring
        for assignment in assigned.assignments.values()
    )
    return "runs as many replicas of it as its cap allows" if there >= most else None
