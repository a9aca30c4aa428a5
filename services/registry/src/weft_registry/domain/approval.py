"""An admin's word about a machine that asked to join: it may work here, or it is turned away."""

from weft_contracts.commit import Decision
from weft_contracts.facts.node import Approved, Rejected
from weft_contracts.facts.request import RejectionRequested
from weft_placement.fleet import NodeView

from weft_registry.domain.outcomes import on_node, rejected
from weft_registry.domain.state import Pending


def approve(pending: Pending, node: NodeView) -> Decision:
    """Approve a node that waits, or that was turned away."""
    if node.approved:
        return rejected(pending, 409, f"the node {node.name} is approved already")
    return on_node(pending, node, Approved(by=pending.actor), f"{node.name} approved")


def reject(pending: Pending, node: NodeView, fact: RejectionRequested) -> Decision:
    """Turn a node away. It keeps its name and its place in the list until it is removed or approved after all."""
    if node.approved:
        return rejected(pending, 409, f"the node {node.name} is approved already: remove it instead")
    if node.rejected is not None:
        return rejected(pending, 409, f"the node {node.name} was rejected already: {node.rejected}")
    return on_node(pending, node, Rejected(why=fact.why), f"{node.name} rejected: {fact.why}")
