"""What the headers of a request ask of routing: to name the replica that answers, or to choose it.

Who may read the mesh's status may ask: it tells nothing more. So a key needs the scope `read` or `admin`; whoever
needs no key may; and a setting lets everybody.
"""

from typing import NamedTuple

from weft_contracts.ids import ReplicaId
from weft_fleet import Fleet, ModelView

from weft_gateway.domain.caller import Caller
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.routing.endpoint import endpoint_of

EXPLAIN = "x-weft-explain"
REPLICA = "x-weft-replica"


class RoutingOptions(NamedTuple):
    """What the request asked for and its caller may have."""

    explain: bool = False
    """The answer names the replica, its node and the run that was ready."""
    replica: str | None = None
    """The only one to answer."""


NO_OPTIONS = RoutingOptions()
_EXPLAINED = RoutingOptions(explain=True)


def routing_options_of(explain: str | None, replica: str | None, caller: Caller, *, everybody: bool) -> RoutingOptions:
    """What the two headers of a request ask for. `everybody`: all are told and may choose. Raises Refused."""
    if explain is None and replica is None:
        return _EXPLAINED if everybody else NO_OPTIONS
    if explain not in (None, "0", "1"):
        what = f"`{EXPLAIN}` is {explain[:40]!r}; it must be 1 or 0."
        raise Refused(400, what, param=EXPLAIN, code="invalid_value")
    explained = explain == "1" or replica is not None
    key = caller.key
    if explained and not everybody and key is not None and not key.may("read"):
        header = REPLICA if replica is not None else EXPLAIN
        what = f"This key's scopes are {', '.join(key.scopes)}; `{header}` needs read, for it tells of replicas."
        raise Refused(403, what, param=header, code="scope_missing")
    return RoutingOptions(explained or everybody, replica)


def check_replica(fleet: Fleet, model: ModelView, id: str) -> None:
    """Refuse a chosen replica that can't take a request of the model, with the reason. Raises Refused."""
    replica = fleet.replicas.get(ReplicaId(id))
    if replica is None:
        there = ", ".join(id for id in model.replicas if id in fleet.replicas) or "none"
        what = f"Replica {id[:80]!r} does not exist; model {model.name!r} has: {there}."
        raise Refused(404, what, param=REPLICA, code="replica_not_found")
    if replica.model != model.id:
        what = f"Replica {id} is none of model {model.name!r}."
        raise Refused(400, what, param=REPLICA, code="replica_of_another_model")
    endpoint = endpoint_of(fleet, replica)
    if endpoint is None:
        why = "it is retiring" if replica.state == "ready" else f"it is {replica.state}"
        raise Refused(503, f"Replica {id} takes no requests: {why}.", param=REPLICA, code="replica_not_ready")
    if fleet.nodes[endpoint.node].draining:
        what = f"Replica {id} takes no new requests: its node {endpoint.node_name} drains."
        raise Refused(503, what, param=REPLICA, code="replica_draining")
