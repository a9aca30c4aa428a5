"""An endpoint's state: what this gateway itself knows of its load, and whether it is ejected."""

from collections.abc import Iterable
from dataclasses import dataclass

from weft_gateway.domain.routing.endpoint import Endpoint


@dataclass(slots=True, eq=False)
class EndpointState:
    """Live state of one endpoint; it ends with the endpoint."""

    endpoint: Endpoint
    in_flight: int = 0
    """This gateway's own requests there."""
    engine_load: int = 0
    """Running and waiting requests of all gateways, from the last frame."""
    last_used: float = 0.0
    """Monotonic seconds; 0: never."""
    ejected: str | None = None
    """Why this gateway does not use the endpoint now; None: it does."""

    @property
    def load(self) -> int:
        """Requests there: the larger of this gateway's own count and what the engine reported."""
        return max(self.in_flight, self.engine_load)


def restricted_to(states: Iterable[EndpointState], only: str | None) -> list[EndpointState]:
    """The endpoints that a request may take: all, or that of the one replica which it chose."""
    return [state for state in states if only is None or state.endpoint.replica == only]


def replica_headers(state: EndpointState, alias: str) -> dict[str, str]:
    """Headers of an answer that name who gave it: the replica, its node, and its run's `ready`; and the alias by which
    its model was asked, if any."""
    endpoint = state.endpoint
    named = {"x-weft-alias": alias} if alias else {}
    return {
        "x-weft-replica": endpoint.replica,
        "x-weft-node": endpoint.node_name,
        "x-weft-run-event": endpoint.event_id,
        **named,
    }
