"""Who may be in the mesh: joining, and joining again."""

from weft_contracts.certificates import check_key
from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.name import Claimed
from weft_contracts.facts.node import Approved, Joined, Rejoined
from weft_contracts.facts.request import JoinRequested
from weft_contracts.ids import node_id_of
from weft_contracts.subjects import name as name_of
from weft_contracts.subjects import node as node_of

from weft_registry.domain.draining import lifted_by_joining
from weft_registry.domain.labels import label_fault
from weft_registry.domain.outcomes import fulfilled, rejected
from weft_registry.domain.state import Pending, RegistryState

MAX_NAME = 255
MAX_HOST = 255


def _fault(fact: JoinRequested) -> str | None:
    """What is wrong with what a machine says of itself. The bounds keep its commits far below a commit's size."""
    if not 1 <= len(fact.name) <= MAX_NAME or not fact.name.isprintable():
        return f"a node's name has 1 to {MAX_NAME} printable characters, this one {len(fact.name)}"
    host, port = fact.addresses.host, fact.addresses.http_port
    if not host or len(host) > MAX_HOST:
        return f"a node must say at which address it is reached: a host name or address of 1 to {MAX_HOST} characters"
    if not 0 <= port <= 65535:
        return f"a node says at which port its files are reached: 1 to 65535, or 0 for none, not {port}"
    if fact.certificate_key:
        try:
            check_key(fact.certificate_key)
        except ValueError as error:
            return str(error)
    return label_fault(fact.labels)


def _rejoined(fact: JoinRequested) -> Rejoined:
    return Rejoined(addresses=fact.addresses, labels=fact.labels, caps=fact.caps, certificate_key=fact.certificate_key)


def join(state: RegistryState, pending: Pending, fact: JoinRequested, now: float) -> Decision:
    """A new node, or the same one again: it keeps what admins said of it, and what it says of itself is taken anew."""
    token = state.tokens.by_id.get(fact.token)
    if token is None or not token.live(now):
        return rejected(pending, 401, "this registration token is unknown, revoked or expired: ask for a new one")
    if fault := _fault(fact):
        return rejected(pending, 400, fault)
    try:
        id = node_id_of(fact.public_key)
    except ValueError as error:
        return rejected(pending, 400, str(error))
    node = state.fleet.nodes.get(id)
    if node is not None and node.removed:
        return rejected(pending, 403, f"the node {id} was removed: it needs a new key to come back")
    if node is not None and node.rejected is not None:
        return rejected(pending, 403, f"an admin turned the node {node.name} away: {node.rejected}")
    cause = pending.cause
    name = name_of("node", fact.name)
    claim = state.names.get(name)
    if claim is not None and claim.owner not in (None, id):
        return rejected(
            pending,
            409,
            f"another node bears the name {fact.name!r}: choose another, or have an admin replace it",
        )
    approval: tuple[Fact, ...] = (Approved(by=fact.token),) if token.approves else ()
    if node is not None:
        if node.kind != fact.node_kind:
            return rejected(pending, 409, f"this node joined as a node of the kind {node.kind}: it needs a new key")
        if node.name != fact.name:
            return rejected(pending, 409, f"this node joined as {node.name!r}: a node keeps its name")
        facts: tuple[Fact, ...] = (_rejoined(fact), *lifted_by_joining(node))
        if not node.approved:
            facts += approval
        return Decision(
            (
                Commit(node_of(id), facts, Guard(node_of(id), node.sequence), cause),
                fulfilled(pending, node=id),
            ),
            why=f"{fact.name} joined again",
        )
    joined = Joined(
        name=fact.name,
        public_key=fact.public_key,
        token=fact.token,
        addresses=fact.addresses,
        labels=fact.labels,
        caps=fact.caps,
        node_kind=fact.node_kind,
        certificate_key=fact.certificate_key,
    )
    commits = [Commit(node_of(id), (joined, *approval), Guard(node_of(id), 0), cause)]
    if claim is None or claim.owner is None:
        guard = Guard(name, claim.sequence if claim else 0)
        commits.append(Commit(name, (Claimed(name=fact.name, owner=id),), guard, cause))
    return Decision((*commits, fulfilled(pending, node=id)), why=f"{fact.name} joined")
