"""Room for one more process."""

from weft_placement.demand import Demand
from weft_placement.fleet import Held, NodeView


def slots(node: NodeView, held: Held, demand: Demand) -> str | None:
    """Refuse a node that holds as many replicas as the policy allows."""
    return f"holds {demand.slots} replicas already" if held.replicas >= demand.slots else None
