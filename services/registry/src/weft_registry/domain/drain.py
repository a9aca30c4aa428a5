"""A drain: nothing new is placed on a node, what runs there is replaced, finished and retired, then it is drained.

What lies between is the reconciler's, the scheduler's and the agent's. An admin's drain stays until it is lifted,
a worker's own until it joins again.
"""

from collections.abc import Iterator

from weft_contracts.commit import Cause, Commit, Decision, Guard
from weft_contracts.facts.node import Drained, Draining, Resumed
from weft_contracts.facts.request import DrainRequested, ResumeRequested
from weft_contracts.ids import CorrelationId
from weft_contracts.subjects import node as node_of
from weft_fleet import NodeView
from weft_requests import PendingRequest

from weft_registry.domain.node_change import on_node
from weft_registry.domain.removal import gone, still_running
from weft_registry.domain.state import RegistryState

LONGEST_S = 7 * 86_400.0


def drain(pending: PendingRequest, node: NodeView, asked: DrainRequested) -> Decision:
    """Begin a drain, or give the one that is under way another deadline, counted from now."""
    if not node.approved:
        return pending.rejected(409, f"the node {node.name} is not approved: nothing runs there")
    if asked.deadline_s > LONGEST_S:
        return pending.rejected(400, f"a drain may take {LONGEST_S:g} seconds at most, not {asked.deadline_s:g}")
    if node.cut_off is not None and asked.why == "worker":
        return pending.rejected(409, f"the node {node.name} is cut off: {node.cut_off}")
    by = node.id if asked.why == "worker" else pending.actor
    fact = Draining(why=asked.why, deadline_s=asked.deadline_s, by=by)
    before = node.drain
    if before is not None:
        if asked.why == "worker" and before.why == "admin":
            return on_node(pending, node, None, f"{node.name}: an admin's drain stands already")
        if node.drained and (before.why, before.leaves) == (asked.why, None):
            return on_node(pending, node, None, f"{node.name} is drained already")
        fact = fact.model_copy(update={"leaves": before.leaves})
    return on_node(pending, node, fact, f"{node.name} drains")


def resume(pending: PendingRequest, node: NodeView, asked: ResumeRequested) -> Decision:
    """Lift a drain, and a cut-off. A worker lifts only its own drain."""
    drain = node.drain
    if node.cut_off is not None and asked.why == "worker":
        return pending.rejected(409, f"the node {node.name} is cut off: only an admin brings it back")
    if drain is not None and asked.why == "worker" and drain.why == "admin":
        return pending.rejected(409, f"an admin drains the node {node.name}: only an admin lifts that")
    held = drain is not None or node.cut_off is not None
    return on_node(pending, node, Resumed() if held else None, f"{node.name} resumed")


def lifted_by_joining(node: NodeView) -> tuple[Resumed, ...]:
    """What a node's return lifts: its own drain."""
    return (Resumed(),) if node.drain is not None and node.drain.why == "worker" else ()


def finished(state: RegistryState) -> Iterator[Decision]:
    """Nodes whose last run has stopped are drained; those that leave for good are removed with that."""
    for node in state.fleet.nodes.values():
        if node.drain is not None and not (node.drained or node.removed or still_running(state, node)):
            yield _drained(state, node, node.drain)


def _drained(state: RegistryState, node: NodeView, drain: Draining) -> Decision:
    cause = state.drains.causes.get(node.id) or Cause(CorrelationId(f"drain-{node.id}"))
    aggregate = node_of(node.id)
    drained = Drained(unfinished=dict(state.drains.unfinished.get(node.id, {})))
    removed, released = gone(state, node, drain.leaves, cause) if drain.leaves is not None else ((), ())
    change = Commit(aggregate, (drained, *removed), Guard(aggregate, node.sequence), cause)
    return Decision((change, *released), f"{node.name} is drained" + (", and leaves" if removed else ""))
