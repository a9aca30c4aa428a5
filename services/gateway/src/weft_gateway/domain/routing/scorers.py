"""How well a lane would do, in 0..1 each."""

from weft_gateway.domain.routing.lane import Lane


def idleness(lane: Lane) -> float:
    """1 with nothing running, then falling with each request."""
    return 1.0 / (1 + lane.load)


def soundness(lane: Lane) -> float:
    """0 while the node's lease is late or it drains."""
    return 1.0 if lane.target.preferred else 0.0
