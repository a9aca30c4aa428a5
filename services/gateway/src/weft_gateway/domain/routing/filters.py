"""Which endpoints may take a request. Each filter returns the reason for its no, or None."""

from collections.abc import Callable, Collection

from weft_gateway.domain.routing.endpoint_state import EndpointState

Filter = Callable[[EndpointState], str | None]


def reachable(state: EndpointState) -> str | None:
    """Refuse a replica whose session this gateway has lost."""
    return state.ejected


def has_room(state: EndpointState) -> str | None:
    """Refuse a replica that runs as many of our requests as it can.

    What other gateways have there only counts in the score: the last frame may be a second old.
    """
    most = state.endpoint.concurrency
    return f"runs {state.in_flight} of {most} requests" if state.in_flight >= most else None


def not_among(tried: Collection[str]) -> Filter:
    """Refuse replicas that this request has tried already."""

    def not_tried(state: EndpointState) -> str | None:
        return "was tried already" if state.endpoint.replica in tried else None

    return not_tried


def same_digest(digest: str) -> Filter:
    """Refuse replicas of another revision: only an equal one can go on where another ended."""

    def same(state: EndpointState) -> str | None:
        return None if state.endpoint.digest == digest else f"runs another revision ({state.endpoint.digest})"

    return same
