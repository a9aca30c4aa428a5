"""Which lanes may take a request. Each filter returns the reason for its no, or None."""

from collections.abc import Callable, Collection

from weft_gateway.domain.routing.lane import Lane

Filter = Callable[[Lane], str | None]


def reachable(lane: Lane) -> str | None:
    """Refuse a replica whose session this gateway has lost."""
    return lane.shunned


def has_room(lane: Lane) -> str | None:
    """Refuse a replica that runs as many of our requests as it can.

    What other gateways have there only counts in the score: the last frame may be a second old.
    """
    most = lane.target.concurrency
    return f"runs {lane.in_flight} of {most} requests" if lane.in_flight >= most else None


def not_among(tried: Collection[str]) -> Filter:
    """Refuse replicas that this request has tried already."""

    def not_tried(lane: Lane) -> str | None:
        return "was tried already" if lane.target.replica in tried else None

    return not_tried


def same_digest(digest: str) -> Filter:
    """Refuse replicas of another revision: only an equal one can go on where another ended."""

    def same(lane: Lane) -> str | None:
        return None if lane.target.digest == digest else f"runs another revision ({lane.target.digest})"

    return same
