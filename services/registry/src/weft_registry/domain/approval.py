"""What becomes of a machine that waits for approval: an admin approves or rejects it, or it waited too long."""

from collections.abc import Iterator
from itertools import islice

from weft_contracts.commit import Cause, Commit, Decision, Guard
from weft_contracts.facts.node import Approved, Expired, Rejected
from weft_contracts.facts.request import RejectionRequested
from weft_contracts.ids import CorrelationId
from weft_contracts.subjects import node as node_of
from weft_fleet import JoinLimits, NodeView
from weft_requests import PendingRequest

from weft_registry.domain.names import released
from weft_registry.domain.node_change import on_node
from weft_registry.domain.state import RegistryState

EXPIRED_A_ROUND = 64


def approve(pending: PendingRequest, node: NodeView) -> Decision:
    """Approve a node that waits, or that was turned away."""
    if node.approved:
        return pending.rejected(409, f"the node {node.name} is approved already")
    return on_node(pending, node, Approved(by=pending.actor), f"{node.name} approved")


def reject(pending: PendingRequest, node: NodeView, fact: RejectionRequested) -> Decision:
    """Turn a node away. It keeps its name and its place in the list until it is removed or approved after all."""
    if node.approved:
        return pending.rejected(409, f"the node {node.name} is approved already: remove it instead")
    if node.rejected is not None:
        return pending.rejected(409, f"the node {node.name} was rejected already: {node.rejected}")
    return on_node(pending, node, Rejected(why=fact.why), f"{node.name} rejected: {fact.why}")


def expired(state: RegistryState, now: float, limits: JoinLimits) -> Iterator[Decision]:
    """The nodes whose time to be approved is over, oldest first. `now` is seconds since the epoch."""
    for id, waiting in islice(state.registrations.waiting.items(), EXPIRED_A_ROUND):
        node, waited = state.fleet.nodes.get(id), now - waiting.since
        if waited < limits.waits_s:
            return
        if node is not None:
            cause, aggregate = Cause(CorrelationId(f"expired-{id}")), node_of(id)
            fact = Expired(waited_s=round(waited, 1), signed_at=node.signed_at)
            gone = Commit(aggregate, (fact,), Guard(aggregate, node.sequence), cause)
            why = f"nobody approved {node.name} within {limits.waits_s:g} s"
            yield Decision((gone, *released(state, node, cause)), why)
