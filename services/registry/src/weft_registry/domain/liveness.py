"""Who is alive: healthy, unhealthy, offline, and the brake when too many fall silent at once."""

from collections.abc import Mapping
from dataclasses import dataclass

from weft_contracts.commit import Cause, Commit, Decision, Guard
from weft_contracts.facts.mesh import BrakeLifted, BrakeSet
from weft_contracts.facts.node import Healthy, NodeFact, Unhealthy, WentOffline
from weft_contracts.ids import CorrelationId, NodeId
from weft_contracts.subjects import MESH
from weft_contracts.subjects import node as node_of
from weft_placement.fleet import NodeView

from weft_registry.domain.hearing import Patience
from weft_registry.domain.state import RegistryState


@dataclass(frozen=True, slots=True)
class Signs:
    """What was heard, at one moment."""

    alive: frozenset[NodeId]
    silence: Mapping[NodeId, float]
    """Seconds, for nodes whose silence means something now; the others are absent."""
    healthy_before: frozenset[NodeId]
    """Nodes that were healthy a minute ago."""


def judge(state: RegistryState, signs: Signs, patience: Patience) -> list[Decision]:
    """The transitions that the signs call for. Pending nodes have none."""
    decisions: list[Decision] = []
    braked = _brake(state, signs, patience, decisions)
    for node in state.fleet.nodes.values():
        if node.removed or not node.approved:
            continue
        fact = _transition(node, signs, patience, braked)
        if fact is not None:
            decisions.append(_about(node, fact))
    return decisions


def _transition(node: NodeView, signs: Signs, patience: Patience, braked: bool) -> NodeFact | None:
    if node.id in signs.alive:
        return Healthy() if node.presence != "healthy" else None
    silence = signs.silence.get(node.id)
    if silence is None:
        return None
    if node.presence in ("healthy", "unhealthy") and silence >= patience.offline and not braked:
        return WentOffline(silent_for=round(silence, 1))
    if node.presence == "healthy" and silence >= patience.unhealthy:
        return Unhealthy(silent_for=round(silence, 1))
    return None


def _brake(state: RegistryState, signs: Signs, patience: Patience, decisions: list[Decision]) -> bool:
    """Set or lift the brake; returns whether it holds for this round."""
    nodes = state.fleet.nodes
    if state.fleet.brake is None:
        before = {id for id in signs.healthy_before if id in nodes and not nodes[id].removed}
        silent = {id for id in before if signs.silence.get(id, 0.0) >= patience.unhealthy}
        if not _too_many(len(silent), len(before)):
            return False
        fact = BrakeSet(silent=len(silent), healthy_before=len(before))
        decisions.append(_of_mesh(state, fact, f"{len(silent)} of {len(before)} nodes fell silent at once"))
        return True
    present = [n for n in nodes.values() if n.presence in ("healthy", "unhealthy") and not n.removed]
    silent_now = [n for n in present if n.id not in signs.alive]
    if _too_many(len(silent_now), len(present)):
        return True
    decisions.append(_of_mesh(state, BrakeLifted(why="the leases came back"), "the leases came back"))
    return False


def _too_many(silent: int, of: int) -> bool:
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
