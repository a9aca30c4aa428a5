"""Replicas that are no longer wanted leave their nodes."""

from collections.abc import Container
from itertools import islice

from weft_contracts.facts.node import Unassigned
from weft_contracts.ids import NodeId
from weft_contracts.subjects import Aggregate, node
from weft_fleet import Fleet, ReplicaView

from weft_scheduler.domain.batch import Batch
from weft_scheduler.domain.rules import Rules

_LOOKED_AT = 1024
"""Leaving replicas that one round looks at."""


def retire(fleet: Fleet, rules: Rules, suspects: Container[Aggregate], now: float) -> Batch:
    """`unassigned` on each node that still runs a replica that was retired or evicted. `now` is seconds since the
    epoch."""
    batch = Batch(fleet)
    for id in islice(fleet.leaving, _LOOKED_AT):
        if batch.replicas >= rules.batch:
            break
        replica = fleet.replicas[id]
        cause = replica.retire_cause or replica.cause
        fact = _unassigned(fleet, replica, rules, now)
        facts = {member.node: fact for member in replica.members if _runs_on(fleet, replica, member.node)}
        if any(node(id) in suspects for id in facts) or not batch.takes(cause, facts):
            continue
        batch.add(cause, facts)
    return batch


def _runs_on(fleet: Fleet, replica: ReplicaView, id: NodeId) -> bool:
    assignment = fleet.assignment(id, replica.id)
    return assignment is not None and not assignment.retiring


def _unassigned(fleet: Fleet, replica: ReplicaView, rules: Rules, now: float) -> Unassigned:
    """Where one of its nodes drains, all of it ends when that drain does."""
    nodes = (fleet.nodes.get(member.node) for member in replica.members)
    left = [node.drain_ends_at - now for node in nodes if node is not None and node.draining]
    deadline = max(0.0, round(min(left), 3)) if left else rules.retire_deadline_s
    why = (replica.evicted_why or "made room") if replica.evicted else replica.retire_why or "not wanted"
    return Unassigned(replica=replica.id, deadline_s=deadline, why=why)
