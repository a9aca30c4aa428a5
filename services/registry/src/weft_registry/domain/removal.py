"""Removing a node for good: its claims end, its name is free, its key can't come back."""

from weft_contracts.commit import Cause, Commit, Decision
from weft_contracts.facts.node import Draining, Removed
from weft_contracts.facts.request import RemovalRequested
from weft_contracts.ids import ReplicaId
from weft_fleet import NodeView
from weft_requests import PendingRequest

from weft_registry.domain.names import released
from weft_registry.domain.node_change import on_node
from weft_registry.domain.state import RegistryState

_NAMED = 5


def remove(state: RegistryState, pending: PendingRequest, node: NodeView, fact: RemovalRequested) -> Decision:
    """Remove a node on which nothing runs, with force any; drain it first where something does.

    The node's guard makes a placement that races it lose. What became of the node stands in the answer: the request is
    fulfilled when its drain has begun.
    """
    running = still_running(state, node)
    why = fact.why or f"removed by {pending.actor}"
    if running and not fact.force:
        if fact.deadline_s is None:
            return pending.rejected(409, _would_be_lost(node, running))
        drain = Draining(why="admin", deadline_s=fact.deadline_s, by=pending.actor, leaves=why)
        return on_node(pending, node, drain, f"{node.name} drains, to be removed: {why}", state="draining")
    removed, freed = gone(state, node, why, pending.cause)
    return on_node(pending, node, removed, f"{node.name} removed: {why}", *freed, state="removed")


def gone(
    state: RegistryState, node: NodeView, why: str, cause: Cause
) -> tuple[tuple[Removed, ...], tuple[Commit, ...]]:
    """The fact of a removal, and the commits that go with it: the name is free again."""
    return (Removed(why=why),), released(state, node, cause)


def still_running(state: RegistryState, node: NodeView) -> list[ReplicaId]:
    """Replicas that a removal would end. Of one that was retired on a node that is gone nothing more is to be heard."""
    assignments = state.fleet.assigned(node.id).assignments
    return [id for id, each in assignments.items() if each.holds and not (each.retiring and node.gone)]


def _would_be_lost(node: NodeView, running: list[ReplicaId]) -> str:
    named = ", ".join(running[:_NAMED]) + (" and others" if len(running) > _NAMED else "")
    return (
        f"{len(running)} replica{'s' if len(running) > 1 else ''} of {node.name} would be lost ({named}):"
        " drain it first, or force the removal"
    )
