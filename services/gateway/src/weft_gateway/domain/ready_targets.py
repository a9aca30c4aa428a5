"""Which replicas of a model answer now, as the folded log tells it."""

from collections.abc import Iterator

from weft_contracts.ids import ModelId
from weft_placement.fleet import Fleet, ReplicaView

from weft_gateway.domain.target import Target


def ready_targets(fleet: Fleet, model: ModelId) -> Iterator[Target]:
    """The model's ready replicas whose run counts, oldest first."""
    view = fleet.models.get(model)
    if view is None or view.deleted:
        return
    for id in view.replicas:
        replica = fleet.replicas.get(id)
        if replica is not None and (target := target_of(fleet, replica)) is not None:
            yield target


def target_of(fleet: Fleet, replica: ReplicaView) -> Target | None:
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
    return Target(
        replica=replica.id,
        model=replica.model,
        revision=replica.revision,
        digest=assignment.digest,
        node=node.id,
        host=node.addresses.host,
        port=run.port,
        incarnation=run.incarnation,
        event_id=run.event_id,
        concurrency=spec.concurrency,
        preferred=node.presence == "healthy" and not node.draining,
    )
