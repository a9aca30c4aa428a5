"""What can be hoped for when no replica of a model can take a request: wait, or say why not."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from weft_contracts.ids import NodeId
from weft_placement.fleet import ModelView, NodeView, ReplicaView

from weft_gateway.domain.model_state import trouble_of


@dataclass(frozen=True, slots=True)
class Prospect:
    """A sentence, and whether waiting can help."""

    hopeful: bool
    sentence: str


def prospect(model: ModelView, replicas: Iterable[ReplicaView], nodes: Iterable[NodeView]) -> Prospect:
    """Judge a model without a ready replica. `replicas` are its own, `nodes` all."""
    if model.unservable is not None:
        return Prospect(False, f"Model {model.name!r} can't be served: {model.unservable}")
    known = {node.id: node for node in nodes}
    wanted = [replica for replica in replicas if replica.wanted and not replica.evicted]
    if not any(not node.removed and node.approved for node in known.values()):
        return Prospect(False, f"Model {model.name!r} has no worker: no approved node is in the mesh.")
    if not wanted:
        if model.spec.min_replicas == 0:
            return Prospect(False, f"Model {model.name!r} has no replica, and none is wanted.")
        return Prospect(True, f"Model {model.name!r} has no replica yet.")
    if all(replica.state == "unplaceable" for replica in wanted):
        reason = next((r.unplaceable.reason for r in wanted if r.unplaceable is not None), "no node fits")
        return Prospect(False, f"Model {model.name!r} has no place: {reason}")
    furthest = max(wanted, key=_progress)
    return Prospect(True, f"Model {model.name!r} is not ready: {_phase(furthest, known)}.")


_ORDER = ("failed", "lost", "stopped", "stopping", "unplaceable", "added", "placed", "loading", "degraded", "ready")


def _progress(replica: ReplicaView) -> int:
    return _ORDER.index(replica.state)


def _phase(replica: ReplicaView, nodes: Mapping[NodeId, NodeView]) -> str:
    """Where the replica is and what it does there, and why that is not its first time."""
    leader = replica.leader
    if leader is None:
        return f"replica {replica.id} is {replica.state}"
    run = replica.runs.get(leader.node)
    phase = run.phase if run is not None and replica.state == "loading" else replica.state
    node = nodes.get(leader.node)
    said = f"replica {replica.id} on node {node.name if node is not None else leader.node} is {phase}"
    trouble = trouble_of(run) if run is not None else ""
    return f"{said}, {trouble.rstrip('.')}" if trouble else said
