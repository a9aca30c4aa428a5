"""A group that lost a rank starts anew where it is: all of its ranks, under the next epoch.

What ran before is of an epoch that nobody counts any more: its agents end it, and no word of it is believed. How often
that is tried is bounded by the agents, which say `failed` after a few starts; then the group is replaced.
"""

from collections.abc import Container, Sequence
from itertools import islice

from weft_contracts.commit import Cause
from weft_contracts.facts.replica import Restarted
from weft_contracts.ids import NodeId
from weft_contracts.subjects import Aggregate, node, replica
from weft_fleet import Fleet, ReplicaView, RunView

from weft_scheduler.domain.assignments import assigned
from weft_scheduler.domain.batch import Batch, guarded
from weft_scheduler.domain.rules import Rules

_LOOKED_AT = 1024
"""Groups that one round looks at."""
_MOST_WHY = 500
"""Characters of how a rank ended."""


def restart_groups(fleet: Fleet, rules: Rules, suspects: Container[Aggregate], taken: tuple[NodeId, ...]) -> Batch:
    """`assigned` under the next epoch on every node of each group that lost a rank, and `restarted`.

    A group with a node that is silent or gone waits: it is replaced, or the node comes back.
    """
    batch = Batch(fleet, taken)
    for id in islice(fleet.broken, _LOOKED_AT):
        if batch.replicas >= rules.batch:
            break
        view = fleet.replicas[id]
        ended = view.broken
        told = (replica(id), *(node(member.node) for member in view.members))
        if not ended or view.gone or any(each in suspects for each in told):
            continue
        first = min(ended, key=lambda run: run.sequence)
        cause = Cause(first.correlation_id, first.event_id)
        facts = assigned(fleet, view, view.members, view.epoch + 1)
        if batch.takes(cause, facts):
            restarted = Restarted(epoch=view.epoch + 1, why=_why(fleet, view, ended))
            batch.add(cause, facts, guarded(replica(id), view.sequence, (restarted,), cause))
    return batch


def _why(fleet: Fleet, view: ReplicaView, ended: Sequence[RunView]) -> str:
    ranks = {member.node: member.rank for member in view.members}
    first = min(ended, key=lambda run: run.sequence)
    told = fleet.nodes.get(first.node)
    name = told.name if told is not None else first.node
    return f"rank {ranks[first.node]} on {name} ended: {first.reason}"[:_MOST_WHY]
