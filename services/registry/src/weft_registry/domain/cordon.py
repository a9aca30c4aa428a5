"""A cordon: nothing new is placed on a node, what runs there runs on."""

from weft_contracts.commit import Decision
from weft_contracts.facts.node import Cordoned, Uncordoned
from weft_contracts.facts.request import CordonRequested, UncordonRequested
from weft_fleet import NodeView
from weft_requests import PendingRequest

from weft_registry.domain.node_change import on_node


def cordon(pending: PendingRequest, node: NodeView, fact: CordonRequested) -> Decision:
    """Cordon a node, whatever else is said of it; one that is cordoned stays as it is."""
    return on_node(pending, node, None if node.cordoned else Cordoned(why=fact.why), f"{node.name} cordoned")


def uncordon(pending: PendingRequest, node: NodeView, fact: UncordonRequested) -> Decision:
    """Lift a cordon."""
    return on_node(pending, node, Uncordoned(why=fact.why) if node.cordoned else None, f"{node.name} uncordoned")
