"""The answer to the request to take a model off one node."""

from weft_contracts import subjects
from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.facts.model import Unloaded
from weft_contracts.facts.request import UnloadRequested
from weft_placement.fleet import ModelView

from weft_reconciler.domain.eligible import able
from weft_reconciler.domain.pending import Pending
from weft_reconciler.domain.state import State


def answer_unload(state: State, pending: Pending, wish: UnloadRequested, model: ModelView) -> Decision:
    """Mark the replicas of a model on a node. What isn't there is as good as gone.

    409 where its minimum asks for it and no other node may take it: it would wait for a place for ever.
    """
    node = state.fleet.nodes.get(wish.node)
    if node is None or node.removed:
        return pending.rejected(404, f"no node has the id {wish.node}")
    there = tuple(
        id
        for id in model.replicas
        if (view := state.fleet.replicas[id]).wanted and any(member.node == wish.node for member in view.members)
    )
    closing = pending.fulfilled(model=model.id, node=wish.node, replicas=" ".join(there))
    if not there:
        return Decision((closing,), f"{model.name} is not on {node.name}")
    others = (each for each in able(state.fleet, model) if each.id != wish.node)
    if model.spec.min_replicas and not any(not (other.draining or other.cordoned) for other in others):
        return pending.rejected(
            409,
            f"{model.name} wants {model.spec.min_replicas} and only {node.name} can run it: lower its minimum, or"
            " remove it",
        )
    aggregate = subjects.model(model.id)
    fact = Unloaded(node=wish.node, replicas=there, deadline_s=wish.deadline_s)
    unloaded = Commit(aggregate, (fact,), Guard(aggregate, model.sequence), pending.cause)
    return Decision((unloaded, closing), f"{model.name} is taken off {node.name}")
