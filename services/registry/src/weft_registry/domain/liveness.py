"""Who is alive: healthy, unhealthy, offline, and the brake when too many fall silent at once."""

from weft_contracts.commit import Cause, Commit, Decision, Guard
from weft_contracts.facts.mesh import BrakeLifted, BrakeSet
from weft_contracts.facts.node import Healthy, NodeFact, Unhealthy, WentOffline
from weft_contracts.facts.request import BrakeLiftRequested
from weft_contracts.ids import CorrelationId
from weft_contracts.subjects import MESH
from weft_contracts.subjects import node as node_of
from weft_fleet import NodeView
from weft_requests import PendingRequest

from weft_registry.domain.failure_detector import Observations, Timeouts
from weft_registry.domain.state import RegistryState


def transitions(state: RegistryState, observations: Observations, timeouts: Timeouts) -> list[Decision]:
    """The transitions that the observations call for. Pending nodes have none."""
    decisions: list[Decision] = []
    braked = _brake(state, observations, timeouts, decisions)
    for node in state.fleet.nodes.values():
        if node.removed or not node.approved or node.cut_off is not None:
            continue
        fact = _transition(node, observations, timeouts, braked)
        if fact is not None:
            decisions.append(_about(node, fact))
    return decisions


def lift_brake(state: RegistryState, pending: PendingRequest, asked: BrakeLiftRequested) -> Decision:
    """An operator knows better: who is silent now is gone, and sets no brake again until heard."""
    if state.fleet.brake is None:
        return pending.rejected(409, "the brake is not set: there is nothing to lift")
    fact = BrakeLifted(why=asked.why or "an operator lifted it", by=pending.actor)
    commit = Commit(MESH, (fact,), Guard(MESH, state.mesh_sequence), pending.cause)
    return pending.fulfilled("the brake is lifted by an operator", commit)


def _transition(node: NodeView, observations: Observations, timeouts: Timeouts, braked: bool) -> NodeFact | None:
    if node.id in observations.alive:
        return Healthy() if node.presence != "healthy" else None
    silence = observations.silence.get(node.id)
    if silence is None:
        return None
    # After the brake the stragglers get as long as anybody: a mesh that returns doesn't return at one moment.
    lost = silence >= timeouts.offline and observations.unbraked >= timeouts.offline and not braked
    if node.presence in ("healthy", "unhealthy") and lost:
        return WentOffline(silent_for=round(silence, 1))
    if node.presence == "healthy" and silence >= timeouts.unhealthy:
        return Unhealthy(silent_for=round(silence, 1))
    return None


def _brake(state: RegistryState, observations: Observations, timeouts: Timeouts, decisions: list[Decision]) -> bool:
    """Set or lift the brake; returns whether it holds for this round."""
    # Who was drained may go when it likes, and who was cut off was made silent: that says nothing of the network.
    nodes = [node for node in state.fleet.nodes.values() if node.approved and not _may_be_silent(node)]
    before = [node for node in nodes if node.id in observations.healthy_before and node.id not in state.written_off]
    silent = [node for node in before if observations.silence.get(node.id, 0.0) >= timeouts.unhealthy]
    at_once = _too_many(len(silent), len(before))
    brake = state.fleet.brake
    if brake is None:
        if at_once:
            fact = BrakeSet(silent=len(silent), healthy_before=len(before))
            decisions.append(_of_mesh(state, fact, f"{len(silent)} of {len(before)} nodes fell silent at once"))
        return at_once
    # As many as were healthy then are wanted back, whoever they are; a removed or drained node is wanted no more.
    wanted = min(brake.healthy_before, len(nodes))
    alive = sum(node.id in observations.alive for node in nodes)
    if at_once or _too_many(wanted - alive, wanted):
        return True
    decisions.append(_of_mesh(state, BrakeLifted(why="the leases came back"), "the leases came back"))
    return False


def _may_be_silent(node: NodeView) -> bool:
    return node.removed or node.drained or node.cut_off is not None


def _too_many(silent: int, of: int) -> bool:
    """At least two, and a third."""
    return silent >= 2 and 3 * silent >= of


def _about(node: NodeView, fact: NodeFact) -> Decision:
    aggregate = node_of(node.id)
    cause = Cause(CorrelationId(f"lease-{node.id}"))
    return Decision(
        (Commit(aggregate, (fact,), Guard(aggregate, node.sequence), cause),), why=f"{node.name}: {fact.type}"
    )


def _of_mesh(state: RegistryState, fact: BrakeSet | BrakeLifted, why: str) -> Decision:
    cause = Cause(CorrelationId("brake"))
    return Decision((Commit(MESH, (fact,), Guard(MESH, state.mesh_sequence), cause),), why=why)
