"""Removing a node for good: its claims end, its name is free, its key can't come back."""

from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.facts.name import Released
from weft_contracts.facts.node import Removed
from weft_contracts.facts.request import RemovalRequested
from weft_contracts.ids import ReplicaId
from weft_contracts.subjects import name as name_of
from weft_placement.fleet import NodeView

from weft_registry.domain.outcomes import on_node, rejected
from weft_registry.domain.state import Pending, RegistryState

_NAMED = 5


def remove(state: RegistryState, pending: Pending, node: NodeView, fact: RemovalRequested) -> Decision:
    """Remove a node on which nothing runs; with force any. The node's guard makes a placement that races it lose."""
    running = still_running(state, node)
    if running and not fact.force:
        named = ", ".join(running[:_NAMED]) + (" and others" if len(running) > _NAMED else "")
        return rejected(
            pending,
            409,
            f"{len(running)} replica{'s' if len(running) > 1 else ''} of {node.name} would be lost ({named}):"
            " drain it first, or force the removal",
        )
    why = fact.why or f"removed by {pending.actor}"
    name = name_of("node", node.name)
    claim = state.names.get(name)
    released: tuple[Commit, ...] = ()
    if claim is not None and claim.owner == node.id:
        released = (Commit(name, (Released(),), Guard(name, claim.sequence), pending.cause),)
    return on_node(pending, node, Removed(why=why), f"{node.name} removed: {why}", *released)


def still_running(state: RegistryState, node: NodeView) -> list[ReplicaId]:
    """Replicas that a removal would end. Of one that was retired on a node that is gone nothing more is to be heard."""
    assignments = state.fleet.held(node.id).assignments
    return [id for id, each in assignments.items() if each.holds and not (each.retiring and node.gone)]
