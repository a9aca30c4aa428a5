"""Why no replica of a model can take a request now, and whether waiting helps."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from weft_contracts.ids import NodeId, ReplicaId
from weft_fleet import ModelView, NodeView, ReplicaView

from weft_gateway.domain.model_state import rests, trouble_of


@dataclass(frozen=True, slots=True)
class Unavailability:
    """The reason as one sentence, and whether waiting helps."""

    temporary: bool
    """The model may become ready by itself."""
    sentence: str
    permanent: bool = False
    """Whether asking again is in vain until an admin changes something."""
    sleeps: bool = False
    """It has no replica because none was asked for: whoever waits for it asks for the first."""


def why_unavailable(
    model: ModelView,
    replicas: Iterable[ReplicaView],
    nodes: Iterable[NodeView],
    rooms: Container[ReplicaId] = (),
) -> Unavailability:
    """Why a model without a ready replica is not served. `replicas` are its own, `nodes` all; for those of `rooms`
    others end."""
    if model.unservable is not None:
        return Unavailability(False, f"Model {model.name!r} can't be served: {model.unservable}", permanent=True)
    known = {node.id: node for node in nodes}
    wanted = [replica for replica in replicas if replica.wanted and not replica.evicted]
    if not any(not node.removed and node.approved for node in known.values()):
        return Unavailability(False, f"Model {model.name!r} has no worker: no approved node is in the mesh.")
    if not wanted:
        if rests(model):
            return Unavailability(True, f"Model {model.name!r} sleeps: a request wakes it.", sleeps=True)
        return Unavailability(True, f"Model {model.name!r} has no replica yet.")
    if any(replica.id in rooms for replica in wanted):
        return Unavailability(True, f"Model {model.name!r} is not ready: others end to make room for it.")
    if all(replica.state == "unplaceable" for replica in wanted):
        kept = next((r.unplaceable.kept.why for r in wanted if r.unplaceable and r.unplaceable.kept), None)
        if kept is not None:
            return Unavailability(True, f"Model {model.name!r} has no place now: {kept}.")
        reason = next((r.unplaceable.reason for r in wanted if r.unplaceable is not None), "no node fits")
        return Unavailability(False, f"Model {model.name!r} has no place: {reason}", permanent=True)
    furthest = max(wanted, key=_progress)
    return Unavailability(True, f"Model {model.name!r} is not ready: {_phase(furthest, known)}.")


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
    sentence = f"replica {replica.id} on node {node.name if node is not None else leader.node} is {phase}"
    trouble = trouble_of(run) if run is not None else ""
    return f"{sentence}, {trouble.rstrip('.')}" if trouble else sentence
