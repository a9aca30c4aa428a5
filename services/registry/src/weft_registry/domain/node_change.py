"""A request about one node is fulfilled: the node's fact and the outcome in one batch."""

from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.facts.node import NodeFact
from weft_contracts.subjects import node as node_of
from weft_fleet import NodeView
from weft_requests import PendingRequest


def on_node(
    pending: PendingRequest,
    node: NodeView,
    facts: NodeFact | tuple[NodeFact, ...] | None,
    why: str,
    *others: Commit,
    **result: str,
) -> Decision:
    """A node changed as it was asked for; None: it is so already, which is as good as done."""
    if facts is None:
        return pending.fulfilled(why, node=node.id, **result)
    aggregate = node_of(node.id)
    facts = facts if isinstance(facts, tuple) else (facts,)
    change = Commit(aggregate, facts, Guard(aggregate, node.sequence), pending.cause)
    return pending.fulfilled(why, change, *others, node=node.id, **result)
