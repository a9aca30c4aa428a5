"""What can be hoped for when no replica of a model can take a request: wait, or say why not."""

from collections.abc import Iterable
from dataclasses import dataclass

from weft_placement.fleet import ModelView, NodeView, ReplicaView


@dataclass(frozen=True, slots=True)
class Prospect:
    """A sentence, and whether waiting can help."""

    hopeful: bool
    sentence: str


def prospect(model: ModelView, replicas: Iterable[ReplicaView], nodes: Iterable[NodeView]) -> Prospect:
    """Judge a model without a ready replica. `replicas` are its own, `nodes` all."""
    if model.unservable is not None:
        return Prospect(False, f"Model {model.name!r} can't be served: {model.unservable}")
    wanted = [replica for replica in replicas if replica.wanted and not replica.evicted]
    if not any(not node.removed and node.approved for node in nodes):
        return Prospect(False, f"Model {model.name!r} has no worker: no approved node is in the mesh.")
    if not wanted:
        if model.spec.min_replicas == 0:
            return Prospect(False, f"Model {model.name!r} has no replica, and none is wanted.")
        return Prospect(True, f"Model {model.name!r} has no replica yet.")
    if all(replica.state == "unplaceable" for replica in wanted):
        reason = next((r.unplaceable.reason for r in wanted if r.unplaceable is not None), "no node fits")
        return Prospect(False, f"Model {model.name!r} has no place: {reason}")
    furthest = max(wanted, key=_progress)
    return Prospect(True, f"Model {model.name!r} is not ready: {_phase(furthest)}.")


_ORDER = ("failed", "lost", "stopped", "stopping", "unplaceable", "added", "placed", "loading", "degraded", "ready")


def _progress(replica: ReplicaView) -> int:
    return _ORDER.index(replica.state)


def _phase(replica: ReplicaView) -> str:
    leader = replica.leader
    if leader is None:
        return f"replica {replica.id} is {replica.state}"
    run = replica.runs.get(leader.node)
    phase = run.phase if run is not None and replica.state == "loading" else replica.state
    return f"replica {replica.id} on node {leader.node} is {phase}"
