"""The outcome of a request: fulfilled in the batch that does it, or rejected with one sentence."""

from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.facts.node import NodeFact
from weft_contracts.facts.request import Fulfilled, Rejected
from weft_contracts.subjects import node as node_of
from weft_placement.fleet import NodeView

from weft_registry.domain.state import Pending


def rejected(pending: Pending, status: int, reason: str) -> Decision:
    """A request refused."""
    return Decision(
        (Commit(pending.aggregate, (Rejected(status=status, reason=reason),), pending.guard, pending.cause),),
        why=reason,
    )


def fulfilled(pending: Pending, **result: str) -> Commit:
    """The commit that closes a request; it belongs into the batch that does what was asked."""
    return Commit(pending.aggregate, (Fulfilled(result=result),), pending.guard, pending.cause)


def on_node(pending: Pending, node: NodeView, fact: NodeFact | None, why: str, *others: Commit) -> Decision:
    """A node changed as it was asked for; None: it is so already, which is as good as done."""
    closing = fulfilled(pending, node=node.id)
    if fact is None:
        return Decision((closing,), why)
    aggregate = node_of(node.id)
    change = Commit(aggregate, (fact,), Guard(aggregate, node.sequence), pending.cause)
    return Decision((change, *others, closing), why)
