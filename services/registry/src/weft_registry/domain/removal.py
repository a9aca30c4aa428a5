"""Removing a node for good: its claims end, its name is free, its key can't come back."""

from weft_contracts.commit import Cause, Commit, Decision, Guard
from weft_contracts.facts.name import Released
from weft_contracts.facts.node import Draining, Removed
from weft_contracts.facts.request import RemovalRequested
from weft_contracts.ids import ReplicaId
from weft_contracts.subjects import name as name_of
from weft_contracts.subjects import node as node_of
from weft_placement.fleet import NodeView

from weft_registry.domain.outcomes import fulfilled, rejected
from weft_registry.domain.state import Pending, RegistryState

_NAMED = 5


def remove(state: RegistryState, pending: Pending, node: NodeView, fact: RemovalRequested) -> Decision:
    """Remove a node on which nothing runs, with force any; drain it first where something does.

    The node's guard makes a placement that races it lose.
    """
    running = still_running(state, node)
    why = fact.why or f"removed by {pending.actor}"
    if running and not fact.force:
        if fact.deadline_s is None:
            return rejected(pending, 409, _would_be_lost(node, running))
        drain = Draining(why="admin", deadline_s=fact.deadline_s, by=pending.actor, leaves=why)
        return _answered(pending, node, "draining", (drain,), (), f"{node.name} drains, to be removed: {why}")
    removed, released = gone(state, node, why, pending.cause)
    return _answered(pending, node, "removed", removed, released, f"{node.name} removed: {why}")


def gone(
    state: RegistryState, node: NodeView, why: str, cause: Cause
) -> tuple[tuple[Removed, ...], tuple[Commit, ...]]:
    """The fact of a removal, and the commits that go with it: the name is free again."""
    name = name_of("node", node.name)
    claim = state.names.get(name)
    released: tuple[Commit, ...] = ()
    if claim is not None and claim.owner == node.id:
        released = (Commit(name, (Released(),), Guard(name, claim.sequence), cause),)
    return (Removed(why=why),), released


def still_running(state: RegistryState, node: NodeView) -> list[ReplicaId]:
    """Replicas that a removal would end. Of one that was retired on a node that is gone nothing more is to be heard."""
    assignments = state.fleet.held(node.id).assignments
    return [id for id, each in assignments.items() if each.holds and not (each.retiring and node.gone)]


def _answered(
    pending: Pending,
    node: NodeView,
    what: str,
    facts: tuple[Draining | Removed, ...],
    others: tuple[Commit, ...],
    why: str,
) -> Decision:
    """`what` became of the node stands in the answer: the request is fulfilled when its drain has begun."""
    aggregate = node_of(node.id)
    change = Commit(aggregate, facts, Guard(aggregate, node.sequence), pending.cause)
    return Decision((change, *others, fulfilled(pending, node=node.id, state=what)), why)


def _would_be_lost(node: NodeView, running: list[ReplicaId]) -> str:
    named = ", ".join(running[:_NAMED]) + (" and others" if len(running) > _NAMED else "")
    return (
        f"{len(running)} replica{'s' if len(running) > 1 else ''} of {node.name} would be lost ({named}):"
        " drain it first, or force the removal"
    )
