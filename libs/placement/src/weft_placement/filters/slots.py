"""Room for one more process."""

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand


def slots(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node that holds as many replicas as the policy allows."""
    return f"holds {demand.slots} replicas already" if assigned.replicas >= demand.slots else None
