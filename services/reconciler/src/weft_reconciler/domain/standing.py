"""How each wanted replica stands: whether it counts, whether it serves, whether it may stay."""

from dataclasses import dataclass
from enum import Enum, auto

from weft_contracts.commit import Cause
from weft_contracts.ids import NodeId
from weft_placement.fleet import ModelView, NodeView, ReplicaView

from weft_reconciler.domain.moment import Moment
from weft_reconciler.domain.sentence import QUOTED, short
from weft_reconciler.domain.state import State


class Standing(Enum):
    """What a wanted replica is worth."""

    SERVES = auto()
    """Ready, on healthy nodes."""
    COMING = auto()
    """On its way to serve: without a place, loading, starting again."""
    AWAITED = auto()
    """Silent or failed while nothing may be replaced: it counts, and nobody knows."""
    LOST = auto()
    """Its node is offline. It stays until another serves in its place, or it returns."""
    LEAVING = auto()
    """It serves, of an old revision or on a draining node. It stays until another serves in its place."""
    OVER = auto()
    """It will not serve again: retired at once."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A standing, and for those that must be replaced the reason and the event that it follows from."""

    standing: Standing
    why: str = ""
    cause: Cause | None = None
    outdated: bool = False


def judge(state: State, model: ModelView, replica: ReplicaView, moment: Moment) -> Judgement:
    """How a wanted replica of a model stands now."""
    if replica.evicted:
        return Judgement(Standing.OVER, f"{replica.id} was evicted")
    nodes = [state.fleet.nodes.get(member.node) for member in replica.members]
    present = [node for node in nodes if node is not None and not node.removed]
    if len(present) < len(nodes):
        return Judgement(Standing.OVER, f"{replica.id} is lost: its node was removed")
    return (
        _failed(state, replica)
        or _silent(state, replica, present, moment)
        or _outdated(state, model, replica)
        or _draining(state, model, replica, present, moment)
        or _unloaded(state, model, replica, moment)
        or Judgement(Standing.SERVES if _serves(replica, present) else Standing.COMING)
    )


def _failed(state: State, replica: ReplicaView) -> Judgement | None:
    for run in replica.runs.values():
        if run.phase == "failed":
            if state.fleet.brake is not None:
                return Judgement(Standing.AWAITED)
            why = f"{replica.id} failed on {_name(state, run.node)}: {short(run.reason, QUOTED)}"
            return Judgement(Standing.OVER, why, Cause(run.correlation_id, run.event_id))
    return None


def _silent(state: State, replica: ReplicaView, nodes: list[NodeView], moment: Moment) -> Judgement | None:
    for node in nodes:
        if node.presence != "offline":
            continue
        if state.fleet.brake is not None or not state.silence.lasts(node.id, moment):
            return Judgement(Standing.AWAITED)
        offline = state.silence.offline.get(node.id)
        why = f"{replica.id} is lost: {node.name} is offline"
        return Judgement(Standing.LOST, why, offline.cause if offline else None)
    return None


def _outdated(state: State, model: ModelView, replica: ReplicaView) -> Judgement | None:
    digest, spec = state.fleet.spec_of(replica)
    if digest == model.digest and spec.selector == model.spec.selector:
        return None
    why = f"revision {model.revision} replaces revision {replica.revision}"
    stays = replica.state == "ready" or _sleeps(replica)
    return Judgement(Standing.LEAVING if stays else Standing.OVER, why, outdated=True)


def _draining(
    state: State, model: ModelView, replica: ReplicaView, nodes: list[NodeView], moment: Moment
) -> Judgement | None:
    for node in nodes:
        if not node.draining:
            continue
        drain = state.drains.begun.get(node.id)
        stays = replica.state == "ready" and state.drains.waits(node.id, state.fleet, model, moment.now)
        return Judgement(
            Standing.LEAVING if stays else Standing.OVER,
            f"{node.name} drains",
            drain.cause if drain is not None else None,
        )
    return None


def _unloaded(state: State, model: ModelView, replica: ReplicaView, moment: Moment) -> Judgement | None:
    unload = state.unloads.marked.get(replica.id)
    if unload is None:
        return None
    stays = replica.state == "ready" and model.spec.min_replicas > 0 and moment.now < unload.waits_until
    why = f"{model.name} is unloaded from {_name(state, unload.node)}"
    return Judgement(Standing.LEAVING if stays else Standing.OVER, why, unload.cause)


def _serves(replica: ReplicaView, nodes: list[NodeView]) -> bool:
    return replica.state == "ready" and all(node.presence == "healthy" for node in nodes)


def _sleeps(replica: ReplicaView) -> bool:
    """Whether its mesh went down in order: it serves again when its node is back."""
    return any(run.stopped == "shutdown" for run in replica.runs.values())


def _name(state: State, id: NodeId) -> str:
    node = state.fleet.nodes.get(id)
    return node.name if node is not None else id
