"""Who may be in the mesh: joining, joining again, approval."""

from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.name import Claimed
from weft_contracts.facts.node import Approved, Joined, Rejoined
from weft_contracts.facts.request import ApprovalRequested, Fulfilled, JoinRequested, Rejected
from weft_contracts.ids import node_id_of
from weft_contracts.subjects import name as name_of
from weft_contracts.subjects import node as node_of

from weft_registry.domain.state import Pending, RegistryState

MAX_NAME = 255
MAX_HOST = 255
MAX_LABELS = 64
MAX_LABEL = 63


def answer(state: RegistryState, pending: Pending, now: float) -> Decision:
    """What becomes of one request. Always an outcome: fulfilled in the batch that does it, or rejected."""
    match pending.fact:
        case JoinRequested() as fact:
            return _join(state, pending, fact, now)
        case ApprovalRequested() as fact:
            return _approve(state, pending, fact)


def rejected(pending: Pending, status: int, reason: str) -> Decision:
    """A request refused with one sentence."""
    return Decision(
        (Commit(pending.aggregate, (Rejected(status=status, reason=reason),), pending.guard, pending.cause),),
        why=reason,
    )


def _fulfilled(pending: Pending, **result: str) -> Commit:
    return Commit(pending.aggregate, (Fulfilled(result=result),), pending.guard, pending.cause)


def _fault(fact: JoinRequested) -> str | None:
    """What is wrong with what a machine says of itself. The bounds keep its commits far below a commit's size."""
    if not 1 <= len(fact.name) <= MAX_NAME or not fact.name.isprintable():
        return f"a node's name has 1 to {MAX_NAME} printable characters, this one {len(fact.name)}"
    host, port = fact.addresses.host, fact.addresses.http_port
    if not host or len(host) > MAX_HOST:
        return f"a node must say at which address it is reached: a host name or address of 1 to {MAX_HOST} characters"
    if not 0 <= port <= 65535:
        return f"a node says at which port its files are reached: 1 to 65535, or 0 for none, not {port}"
    if len(fact.labels) > MAX_LABELS:
        return f"a node has at most {MAX_LABELS} labels, this one {len(fact.labels)}"
    if any(not 1 <= len(key) <= MAX_LABEL or len(value) > MAX_LABEL for key, value in fact.labels.items()):
        return f"a label's name has 1 to {MAX_LABEL} characters and its value at most {MAX_LABEL}"
    return None


def _join(state: RegistryState, pending: Pending, fact: JoinRequested, now: float) -> Decision:
    token = state.tokens.by_id.get(fact.token)
    if token is None or not token.live(now):
        return rejected(pending, 401, "this registration token is unknown, revoked or expired: ask for a new one")
    if fault := _fault(fact):
        return rejected(pending, 400, fault)
    try:
        id = node_id_of(fact.public_key)
    except ValueError as error:
        return rejected(pending, 400, str(error))
    cause = pending.cause
    name = name_of("node", fact.name)
    claim = state.names.get(name)
    if claim is not None and claim.owner not in (None, id):
        return rejected(
            pending,
            409,
            f"another node bears the name {fact.name!r}: choose another, or have an admin replace it",
        )
    node = state.fleet.nodes.get(id)
    approval: tuple[Fact, ...] = (Approved(by=fact.token),) if token.approves else ()
    if node is not None and not node.removed:
        if node.name != fact.name:
            return rejected(pending, 409, f"this node joined as {node.name!r}: a node keeps its name")
        facts: tuple[Fact, ...] = (Rejoined(addresses=fact.addresses, labels=fact.labels),)
        if not node.approved:
            facts += approval
        return Decision(
            (
                Commit(node_of(id), facts, Guard(node_of(id), node.sequence), cause),
                _fulfilled(pending, node=id),
            ),
            why=f"{fact.name} joined again",
        )
    if node is not None:
        return rejected(pending, 409, f"the node {id} was removed: it needs a new key to come back")
    joined = Joined(
        name=fact.name,
        public_key=fact.public_key,
        token=fact.token,
        addresses=fact.addresses,
        labels=fact.labels,
    )
    commits = [Commit(node_of(id), (joined, *approval), Guard(node_of(id), 0), cause)]
    if claim is None or claim.owner is None:
        guard = Guard(name, claim.sequence if claim else 0)
        commits.append(Commit(name, (Claimed(name=fact.name, owner=id),), guard, cause))
    return Decision((*commits, _fulfilled(pending, node=id)), why=f"{fact.name} joined")


def _approve(state: RegistryState, pending: Pending, fact: ApprovalRequested) -> Decision:
    node = state.fleet.nodes.get(fact.node)
    if node is None or node.removed:
        return rejected(pending, 404, f"there is no node {fact.node}")
    if node.approved:
        return rejected(pending, 409, f"the node {node.name} is approved already")
    aggregate = node_of(fact.node)
    cause = pending.cause
    approved = Approved(by=pending.actor)
    return Decision(
        (
            Commit(aggregate, (approved,), Guard(aggregate, node.sequence), cause),
            _fulfilled(pending, node=fact.node),
        ),
        why=f"{node.name} approved",
    )
