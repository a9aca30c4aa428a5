"""Who may be in the mesh: joining, and joining again."""

from weft_contracts.certificates import check_key
from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.node import Approved, Joined, Rejoined
from weft_contracts.facts.request import JoinRequested
from weft_contracts.ids import node_id_of
from weft_contracts.subjects import node as node_of
from weft_fleet.registrations import beyond
from weft_requests import PendingRequest

from weft_registry.domain.admissions import NOBODY_YET, Admissions
from weft_registry.domain.drain import lifted_by_joining
from weft_registry.domain.labels import own_label_fault
from weft_registry.domain.names import claimed, misleading, shadowed, taken
from weft_registry.domain.state import RegistryState

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
    return own_label_fault(fact.labels)


def _rejoined(fact: JoinRequested) -> Rejoined:
    return Rejoined(
        addresses=fact.addresses,
        labels=fact.labels,
        caps=fact.caps,
        certificate_key=fact.certificate_key,
        signed_at=fact.signed_at,
    )


def join(
    state: RegistryState,
    pending: PendingRequest,
    fact: JoinRequested,
    now: float,
    admissions: Admissions = NOBODY_YET,
) -> Decision:
    """A new node, or the same one again: it keeps what admins said of it, and what it says of itself is taken anew."""
    limits = admissions.limits
    token = state.tokens.by_id.get(fact.token)
    if token is None or not token.live(now):
        return pending.rejected(401, "this registration token is unknown, revoked or expired: ask for a new one")
    if not token.serves(fact.public_key):
        return pending.rejected(401, "this registration token is for other machines: ask for one of your own")
    if fault := _fault(fact):
        return pending.rejected(400, fault)
    try:
        id = node_id_of(fact.public_key)
    except ValueError as error:
        return pending.rejected(400, str(error))
    node = state.fleet.nodes.get(id)
    if node is not None and node.removed:
        return pending.rejected(403, f"the node {id} was removed: it needs a new key to come back")
    if node is not None and node.rejected is not None:
        return pending.rejected(403, f"an admin turned the node {node.name} away: {node.rejected}")
    if node is not None and node.cut_off is not None:
        return pending.rejected(403, f"the node {node.name} is cut off ({node.cut_off}): an admin must resume it")
    last = node or state.expired.get(id)
    if last is not None and last.signed_at and fact.signed_at <= last.signed_at:
        return pending.rejected(409, "a later registration of this node was taken already: sign it anew")
    turn = state.turns.get(pending.id, (0, 0))
    if over := beyond(*turn, limits, token.most_waiting):  # gateways see to it, each by what it has folded
        return pending.rejected(429, over)
    cause = pending.cause
    approves = admissions.approves(state, fact.token)
    approval: tuple[Fact, ...] = (Approved(by=fact.token),) if approves else ()
    if node is not None:
        if node.kind != fact.node_kind:
            return pending.rejected(409, f"this node joined as a node of the kind {node.kind}: it needs a new key")
        if node.name != fact.name:
            return pending.rejected(409, f"this node joined as {node.name!r}: a node keeps its name")
        facts: tuple[Fact, ...] = (_rejoined(fact), *lifted_by_joining(node))
        if not node.approved:
            facts += approval
        rejoined = Commit(node_of(id), facts, Guard(node_of(id), node.sequence), cause)
        return pending.fulfilled(f"{fact.name} joined again", rejoined, node=id)
    if misleading(fact.name, id):
        return pending.rejected(400, f"the name {fact.name!r} is written as the id of a node: choose another")
    if shadowed(fact.name):
        return pending.rejected(
            400, f"no node can be called {fact.name!r}, which the API means otherwise: choose another"
        )
    if why := taken(state, fact.name, id):
        return pending.rejected(409, why)
    if not approves:
        crowded = state.registrations.crowded(
            fact.token,
            limits,
            token.most_waiting,
            more=admissions.waiting[fact.token],
            more_in_all=admissions.waiting.total(),
        )
        if crowded is not None:
            return pending.rejected(429, crowded.why)
    return _joined(state, pending, fact, approval)


def _joined(state: RegistryState, pending: PendingRequest, fact: JoinRequested, approval: tuple[Fact, ...]) -> Decision:
    id, cause = node_id_of(fact.public_key), pending.cause
    joined = Joined(
        name=fact.name,
        public_key=fact.public_key,
        token=fact.token,
        addresses=fact.addresses,
        labels=fact.labels,
        caps=fact.caps,
        node_kind=fact.node_kind,
        certificate_key=fact.certificate_key,
        signed_at=fact.signed_at,
    )
    before = state.expired.get(id)
    guard = Guard(node_of(id), 0 if before is None else before.sequence)
    commits = (Commit(node_of(id), (joined, *approval), guard, cause), *claimed(state, fact.name, id, cause))
    return pending.fulfilled(f"{fact.name} joined", *commits, node=id)
