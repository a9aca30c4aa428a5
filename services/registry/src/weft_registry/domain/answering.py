"""The answer to each request that the registry owns. Always an outcome."""

from typing import assert_never

from weft_contracts.commit import Decision
from weft_contracts.facts.request import (
    ApprovalRequested,
    BrakeLiftRequested,
    CordonRequested,
    DrainRequested,
    JoinRequested,
    LabelsRequested,
    RejectionRequested,
    RemovalRequested,
    ReplicaCapRequested,
    ResumeRequested,
    TokenRequested,
    TokenRevocationRequested,
    UncordonRequested,
    VramBudgetRequested,
)

from weft_registry.domain.approval import approve, reject
from weft_registry.domain.caps import cap_replicas, set_budget
from weft_registry.domain.cordon import cordon, uncordon
from weft_registry.domain.draining import drain, resume
from weft_registry.domain.joining import join
from weft_registry.domain.labels import label
from weft_registry.domain.liveness import lift
from weft_registry.domain.outcomes import rejected
from weft_registry.domain.removal import remove
from weft_registry.domain.state import Pending, RegistryState
from weft_registry.domain.token_requests import create, revoke

MAX_WHY = 500


def answer(state: RegistryState, pending: Pending, now: float) -> Decision:
    """What becomes of one request. `now` is seconds since the epoch."""
    match pending.fact:
        case JoinRequested() as fact:
            return join(state, pending, fact, now)
        case BrakeLiftRequested() as fact:
            return lift(state, pending, fact)
        case TokenRequested() as fact:
            return create(state, pending, fact)
        case TokenRevocationRequested() as fact:
            return revoke(state, pending, fact)
        case fact:
            return _about_a_node(state, pending, fact)


def _about_a_node(
    state: RegistryState,
    pending: Pending,
    fact: ApprovalRequested
    | RejectionRequested
    | CordonRequested
    | UncordonRequested
    | DrainRequested
    | ResumeRequested
    | LabelsRequested
    | ReplicaCapRequested
    | VramBudgetRequested
    | RemovalRequested,
) -> Decision:
    node = state.fleet.nodes.get(fact.node)
    if node is None or node.removed:
        return rejected(pending, 404, f"there is no node {fact.node}")
    why: str = getattr(fact, "why", "")
    if len(why) > MAX_WHY:
        return rejected(pending, 400, f"a reason has at most {MAX_WHY} characters, this one {len(why)}")
    match fact:
        case ApprovalRequested():
            return approve(pending, node)
        case RejectionRequested():
            return reject(pending, node, fact)
        case CordonRequested():
            return cordon(pending, node, fact)
        case UncordonRequested():
            return uncordon(pending, node, fact)
        case DrainRequested():
            return drain(pending, node, fact)
        case ResumeRequested():
            return resume(pending, node, fact)
        case LabelsRequested():
            return label(pending, node, fact)
        case ReplicaCapRequested():
            return cap_replicas(pending, node, fact)
        case VramBudgetRequested():
            return set_budget(pending, node, fact)
        case RemovalRequested():
            return remove(state, pending, node, fact)
        case _:
            assert_never(fact)
