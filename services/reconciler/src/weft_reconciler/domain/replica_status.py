"""The status of each wanted replica: whether it counts, whether it serves, whether it may stay."""

from dataclasses import dataclass
from enum import Enum, auto

from weft_contracts.commit import Cause
from weft_contracts.ids import NodeId
from weft_fleet import ModelView, NodeView, ReplicaView, Revision
from weft_placement.kept_recipe import recipe_for
from weft_requests import QUOTED, shortened

from weft_reconciler.domain.decision_time import DecisionTime
from weft_reconciler.domain.eligible_nodes import eligible_nodes
from weft_reconciler.domain.spread_nodes import beyond_spread
from weft_reconciler.domain.state import State


class ReplicaStatus(Enum):
    """What becomes of a wanted replica."""

    SERVING = auto()
    """Ready, on healthy nodes."""
    STARTING = auto()
    """On its way to serve: without a place, loading, starting again."""
    UNKNOWN = auto()
    """Silent or failed while nothing may be replaced: it counts, and nobody knows."""
    LOST = auto()
    """Its one node is offline. It stays until another serves in its place, or it returns."""
    OUTGOING = auto()
    """It serves, but is of a superseded revision, on a draining node or unloaded. It stays until another serves in its
    place."""
    ENDED = auto()
    """It will not serve again: retired at once."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """A status, and for those that must be replaced the reason and the event that it follows from."""

    status: ReplicaStatus
    why: str = ""
    cause: Cause | None = None
    outdated: bool = False
    waits: bool = False
    """Something else than what happens to it may change this: the room that other nodes have, time."""


def assess(
    state: State, model: ModelView, replica: ReplicaView, revision: Revision | None, time: DecisionTime
) -> Assessment:
    """The status of a wanted replica of a model now. `revision` is what it counts for; None where it is superseded."""
    if replica.evicted:
        return Assessment(ReplicaStatus.ENDED, f"{replica.id} was evicted")
    nodes = [state.fleet.nodes.get(member.node) for member in replica.members]
    present = [node for node in nodes if node is not None and not node.removed]
    if len(present) < len(nodes):
        return Assessment(ReplicaStatus.ENDED, f"{replica.id} is lost: its node was removed")
    return (
        _failed(state, replica)
        or _beyond_spread(state, model, replica, revision)
        or _silent(state, model, replica, revision, present, time)
        or (_outdated(model, replica) if revision is None else None)
        or _draining(state, model, replica, revision, present, time)
        or _unloaded(state, model, replica, revision, time)
        or _left_behind(state, model, replica)
        or _without_room(state, model, replica, revision)
        or _keeping_off(state, model, replica, revision, time)
        or Assessment(ReplicaStatus.SERVING if _serves(replica, present) else ReplicaStatus.STARTING)
    )


def _failed(state: State, replica: ReplicaView) -> Assessment | None:
    for run in replica.runs.values():
        if run.phase == "failed":
            if state.fleet.brake is not None:
                return Assessment(ReplicaStatus.UNKNOWN)
            why = f"{replica.id} failed on {_name(state, run.node)}: {shortened(run.reason, QUOTED)}"
            return Assessment(ReplicaStatus.ENDED, why, Cause(run.correlation_id, run.event_id))
    return None


def _silent(
    state: State,
    model: ModelView,
    replica: ReplicaView,
    revision: Revision | None,
    nodes: list[NodeView],
    time: DecisionTime,
) -> Assessment | None:
    for node in nodes:
        if node.presence != "offline":
            continue
        if state.fleet.brake is not None:
            return Assessment(ReplicaStatus.UNKNOWN)
        if not state.offline.is_lost(node.id, time):
            if revision is None:  # what replaces it need not wait for what becomes of its node
                return Assessment(ReplicaStatus.LOST, _superseded(model, replica), outdated=True)
            return Assessment(ReplicaStatus.UNKNOWN)
        offline = state.offline.by_node.get(node.id)
        why = f"{replica.id} is lost: {node.name} is offline"
        # a group serves no more without one of its nodes, and what it holds on the others is what replaces it needs
        status = ReplicaStatus.ENDED if len(nodes) > 1 else ReplicaStatus.LOST
        return Assessment(status, why, offline.cause if offline else None)
    return None


def _outdated(model: ModelView, replica: ReplicaView) -> Assessment:
    stays = replica.state == "ready" or _shut_down(replica)
    status = ReplicaStatus.OUTGOING if stays else ReplicaStatus.ENDED
    return Assessment(status, _superseded(model, replica), outdated=True)


def _beyond_spread(
    state: State, model: ModelView, replica: ReplicaView, revision: Revision | None
) -> Assessment | None:
    if revision is None or not revision.spec.spread_all:
        return None
    why = beyond_spread(state, model, replica, revision)
    return None if why is None else Assessment(ReplicaStatus.ENDED, why)


def _left_behind(state: State, model: ModelView, replica: ReplicaView) -> Assessment | None:
    """One that runs in what an older recipe made, where its engine's replicas were told to move on after it was
    placed. What is placed later stays, wherever it runs: its node could have nothing newer."""
    engine = model.of(replica.revision).spec.engine
    # what was refused is no better: its replicas stay in what they serve in
    upgrade = state.fleet.upgraded.get(engine)
    if upgrade is None or replica.state != "ready":
        return None
    recipe = recipe_for(state.fleet, model.id, replica.revision)
    today = {variant.digest for variant in recipe.variants} if recipe is not None else set[str]()
    for id, run in replica.runs.items():
        node, placed = state.fleet.nodes.get(id), state.fleet.assigned_sequence(id, replica.id)
        if node is None or not run.backend or placed is None or placed > upgrade.sequence:
            continue
        made = next((each for each in node.environments if each.name == run.backend), None)
        if made is not None and made.recipe in upgrade.superseded and made.recipe not in today:
            why = f"{replica.id} runs in {engine} {made.version}, which is superseded"
            return Assessment(ReplicaStatus.OUTGOING, why, outdated=True)
    return None


def _without_room(state: State, model: ModelView, replica: ReplicaView, revision: Revision | None) -> Assessment | None:
    """One whose engine could not be installed for want of room. It waits for that where no other node could take it,
    else it goes: placement passes over its node as long as that is full."""
    for id, run in replica.runs.items():
        node, part = state.fleet.nodes.get(id), state.fleet.assignment(id, replica.id)
        if node is None or node.installs is None or part is None or run.stopped != "exited":
            continue
        lies = any(made.recipe == part.recipe for made in node.environments)
        if lies or not part.recipe or not node.installs.lacks_room(part.recipe):
            continue
        wanted = revision or model.current
        others = eligible_nodes(state.fleet, model.id, wanted)
        if not any(other.takes_replicas and other.id not in replica.runs for other in others):
            return Assessment(ReplicaStatus.STARTING, waits=True)
        why = f"{replica.id} waits for room on {node.name}: {shortened(run.reason, QUOTED)}"
        return Assessment(ReplicaStatus.ENDED, why, Cause(run.correlation_id, run.event_id))
    return None


def _keeping_off(
    state: State, model: ModelView, replica: ReplicaView, revision: Revision | None, time: DecisionTime
) -> Assessment | None:
    """One without a place that avoids a node since one failed there. Once that counts no more, another is added in its
    place, which may go there."""
    avoided = state.failures.avoided.get(model.id, {}).get(replica.id)
    if avoided is None or replica.placed is not None:
        return None
    free = sorted(avoided - state.failures.recent(model, revision or model.current, time).keys())
    if not free or state.fleet.brake is not None:
        return Assessment(ReplicaStatus.STARTING, waits=True)
    why = f"{replica.id} has no place, and {_name(state, free[0])}, where one failed, may be tried again"
    return Assessment(ReplicaStatus.ENDED, why)


def _superseded(model: ModelView, replica: ReplicaView) -> str:
    if replica.revision == model.revision:  # it was given up, and the one before is kept
        return f"revision {model.revision} can't be served, revision {model.current.number} is kept"
    return f"revision {model.current.number} replaces revision {replica.revision}"


def _draining(
    state: State,
    model: ModelView,
    replica: ReplicaView,
    revision: Revision | None,
    nodes: list[NodeView],
    time: DecisionTime,
) -> Assessment | None:
    wanted = revision or model.current
    for node in nodes:
        if not node.draining:
            continue
        drain = state.drain_deadlines.by_node.get(node.id)
        stays = replica.state == "ready" and state.drain_deadlines.waits(
            node.id, state.fleet, model.id, wanted, time.now
        )
        return Assessment(
            ReplicaStatus.OUTGOING if stays else ReplicaStatus.ENDED,
            f"{node.name} drains",
            drain.cause if drain is not None else None,
        )
    return None


def _unloaded(
    state: State, model: ModelView, replica: ReplicaView, revision: Revision | None, time: DecisionTime
) -> Assessment | None:
    unload = state.unload_deadlines.by_replica.get(replica.id)
    if unload is None:
        return None
    least = (revision or model.current).spec.min_replicas
    stays = replica.state == "ready" and least > 0 and time.now < unload.waits_until
    why = f"{model.name} is unloaded from {_name(state, unload.node)}"
    return Assessment(ReplicaStatus.OUTGOING if stays else ReplicaStatus.ENDED, why, unload.cause)


def _serves(replica: ReplicaView, nodes: list[NodeView]) -> bool:
    return replica.state == "ready" and all(node.presence == "healthy" for node in nodes)


def _shut_down(replica: ReplicaView) -> bool:
    """Whether its mesh went down in order: it serves again when its node is back."""
    return any(run.stopped == "shutdown" for run in replica.runs.values())


def _name(state: State, id: NodeId) -> str:
    node = state.fleet.nodes.get(id)
    return node.name if node is not None else id
