"""Which nodes are to have a replica of a model that is spread over all that match."""

from collections.abc import Iterable
from dataclasses import dataclass

from weft_contracts.ids import NodeId
from weft_fleet import ModelView, ReplicaView, Revision
from weft_placement.filters.labels import unmet

from weft_reconciler.domain.decision_time import DecisionTime
from weft_reconciler.domain.eligible_nodes import eligible_nodes
from weft_reconciler.domain.state import State


@dataclass(frozen=True, slots=True)
class SpreadCount:
    """How many nodes are to have one."""

    now: int
    """That have one, or could take one and none failed there of late."""
    all: int
    """And where one did: it is tried there again, and until then what it was to replace stays."""


def spread_count(
    state: State, model: ModelView, revision: Revision, counted: Iterable[ReplicaView], time: DecisionTime
) -> SpreadCount:
    """Of one revision. `counted`: its replicas that serve or may yet. Time and the reports of nodes alone change it."""
    failed = state.failures.recent(model, revision, time)
    there: set[NodeId] = {member.node for replica in counted for member in replica.members}
    able = {node.id for node in eligible_nodes(state.fleet, model.id, revision) if node.takes_replicas}
    return SpreadCount(len(there | (able - failed.keys())), len(there | able))


def beyond_spread(state: State, model: ModelView, replica: ReplicaView, revision: Revision) -> str | None:
    """Why a replica of a model that is spread must go where it is: its node matches no more, or has another."""
    for id in (member.node for member in replica.members):
        node = state.fleet.nodes.get(id)
        if node is None:
            continue
        if (lacking := unmet(node.labels, revision.spec.selector)) is not None:
            return f"{model.name} is wanted on all nodes that match, and {node.name} {lacking}"
        for other in state.fleet.assigned(id).assignments.values():
            if other.model != model.id or other.retiring or other.ended:
                continue
            earlier = state.fleet.replicas.get(other.replica)
            ours = earlier is not None and earlier.wanted and earlier.number < replica.number
            if ours and model.of(other.revision).runs_as(revision):
                return f"{node.name} has {other.replica} already, and each node has one"
    return None
