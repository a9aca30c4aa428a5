"""What an admin lets a node take at most. What is not said is the worker's to say."""

from weft_contracts.budget import budget_text
from weft_contracts.commit import Decision
from weft_contracts.facts.node import Capped
from weft_contracts.facts.request import ReplicaCapRequested, VramBudgetRequested
from weft_contracts.facts.values import Caps
from weft_fleet import NodeView
from weft_requests import PendingRequest

from weft_registry.domain.node_change import on_node


def cap_replicas(pending: PendingRequest, node: NodeView, fact: ReplicaCapRequested) -> Decision:
    """Bound a node's replicas of one model."""
    most = fact.replicas_per_model
    caps = node.set_caps.model_copy(update={"replicas_per_model": most})
    return _cap(
        pending, node, caps, f"{node.name}: replicas per model {'as the worker says' if most is None else most}"
    )


def set_budget(pending: PendingRequest, node: NodeView, fact: VramBudgetRequested) -> Decision:
    """Bound what replicas claim of each of a node's devices."""
    caps = node.set_caps.model_copy(update={"vram_budget": fact.budget})
    text = "as the worker says" if fact.budget is None else budget_text(fact.budget) or "none"
    return _cap(pending, node, caps, f"{node.name}: VRAM budget {text}")


def _cap(pending: PendingRequest, node: NodeView, caps: Caps, why: str) -> Decision:
    return on_node(pending, node, None if caps == node.set_caps else Capped(caps=caps), why)
