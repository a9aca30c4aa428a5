"""The answer to the request to take a model off one node."""

from weft_contracts import subjects
from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.facts.model import Unloaded
from weft_contracts.facts.request import UnloadRequested
from weft_fleet import ModelView
from weft_requests import PendingRequest

from weft_reconciler.domain.eligible_nodes import eligible_nodes
from weft_reconciler.domain.state import State


def answer_unload(state: State, pending: PendingRequest, asked: UnloadRequested, model: ModelView) -> Decision:
    """Mark the replicas of a model on a node. What isn't there is as good as gone.

    409 where its minimum asks for it and no other node may take it: it would wait for a place for ever.
    """
    node = state.fleet.nodes.get(asked.node)
    if node is None or node.removed:
        return pending.rejected(404, f"no node has the id {asked.node}")
    there = tuple(
        id
        for id in model.replicas
        if (view := state.fleet.replicas[id]).wanted and any(member.node == asked.node for member in view.members)
    )
    result = {"model": model.id, "node": asked.node, "replicas": " ".join(there)}
    if not there:
        return pending.fulfilled(f"{model.name} is not on {node.name}", **result)
    wanted = model.serving
    if wanted.spec.spread_all:
        return pending.rejected(
            409,
            f"{model.name} is wanted on all nodes that match: give {node.name} a label that its selector forbids, or"
            " drain it",
        )
    others = (each for each in eligible_nodes(state.fleet, model.id, wanted) if each.id != asked.node)
    if wanted.spec.min_replicas and not any(not (other.draining or other.cordoned) for other in others):
        return pending.rejected(
            409,
            f"{model.name} wants {wanted.spec.min_replicas} and only {node.name} can run it: lower its minimum, or"
            " remove it",
        )
    aggregate = subjects.model(model.id)
    fact = Unloaded(node=asked.node, replicas=there, deadline_s=asked.deadline_s)
    unloaded = Commit(aggregate, (fact,), Guard(aggregate, model.sequence), pending.cause)
    return pending.fulfilled(f"{model.name} is taken off {node.name}", unloaded, **result)
