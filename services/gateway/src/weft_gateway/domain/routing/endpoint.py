"""Endpoints: the ready replicas of a model and where each one is reached, as the folded log tells it."""

from collections.abc import Iterator
from dataclasses import dataclass

from weft_contracts.ids import EventId, Incarnation, ModelId, NodeId, ReplicaId
from weft_fleet import Fleet, ReplicaView


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One run of a replica, where it is reached. Another start of the replica is another endpoint."""

    replica: ReplicaId
    model: ModelId
    revision: int
    digest: str
    """Of the assignment: sessions name it, and only equal ones may stand in for one another."""
    node: NodeId
    node_name: str
    host: str
    """The node's registered address, never what a run says."""
    port: int
    incarnation: Incarnation
    event_id: EventId
    """Of the run's `ready`."""
    concurrency: int
    """Requests that it runs at once."""
    preferred: bool
    """False while the node's lease is late or it drains: others are chosen where there are any."""

    @property
    def address(self) -> str:
        """`host:port`, an IPv6 host in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def ready_endpoints(fleet: Fleet, model: ModelId) -> Iterator[Endpoint]:
    """The model's ready replicas whose run counts, oldest first."""
    view = fleet.models.get(model)
    if view is None or view.deleted:
        return
    for id in view.replicas:
        replica = fleet.replicas.get(id)
        if replica is not None and (endpoint := endpoint_of(fleet, replica)) is not None:
            yield endpoint


def endpoint_of(fleet: Fleet, replica: ReplicaView) -> Endpoint | None:
    """Where a replica is reached; None unless it is ready, wanted and assigned."""
    leader = replica.leader
    if leader is None or replica.state != "ready":
        return None
    node, run = fleet.nodes.get(leader.node), replica.runs.get(leader.node)
    assignment = fleet.assignment(leader.node, replica.id)
    if node is None or run is None or assignment is None or assignment.retiring:
        return None
    if run.port is None or run.incarnation is None:
        return None
    _, spec = fleet.spec_of(replica)
    return Endpoint(
        replica=replica.id,
        model=replica.model,
        revision=replica.revision,
        digest=assignment.digest,
        node=node.id,
        node_name=node.name,
        host=node.addresses.host,
        port=run.port,
        incarnation=run.incarnation,
        event_id=run.event_id,
        concurrency=spec.concurrency,
        preferred=node.presence == "healthy" and not node.draining,
    )
