"""A cordon: nothing new is placed on a node, what runs there runs on."""

from weft_contracts.commit import Decision
from weft_contracts.facts.node import Cordoned, Uncordoned
from weft_contracts.facts.request import CordonRequested, UncordonRequested
from weft_placement.fleet import NodeView

from weft_registry.domain.outcomes import on_node
from weft_registry.domain.state import Pending


def cordon(pending: Pending, node: NodeView, fact: CordonRequested) -> Decision:
    """Cordon a node, whatever else is said of it; one that is cordoned stays as it is."""
    return on_node(pending, node, None if node.cordoned else Cordoned(why=fact.why), f"{node.name} cordoned")


def uncordon(pending: Pending, node: NodeView, fact: UncordonRequested) -> Decision:
    """Lift a cordon."""
    return on_node(pending, node, Uncordoned(why=fact.why) if node.cordoned else None, f"{node.name} uncordoned")
