"""All that the registry decides from, folded from the log."""

from dataclasses import dataclass, field, replace
from typing import cast

from weft_contracts.commit import Recorded
from weft_contracts.facts.mesh import BrakeLifted, Founded
from weft_contracts.facts.name import Claimed, Released
from weft_contracts.facts.node import Approved, CutOff, Expired, Joined, Rejoined, Removed, Resumed
from weft_contracts.facts.request import JoinRequested
from weft_contracts.facts.token import TokenFact
from weft_contracts.ids import NodeId, ReplicaId, RequestId, TokenId
from weft_contracts.subjects import Aggregate
from weft_fleet import Fleet, Registrations
from weft_requests import PendingRequests

from weft_registry.domain.drain_state import DrainState
from weft_registry.domain.tokens import Tokens


@dataclass(frozen=True, slots=True)
class NameClaim:
    """A unique name: who bears it (None: free again), and its aggregate's last commit."""

    owner: str | None
    sequence: int


@dataclass(frozen=True, slots=True)
class ExpiredNode:
    """A node that nobody approved in time, as its aggregate stands: its key may join anew."""

    sequence: int
    signed_at: float


@dataclass(slots=True)
class RegistryState:
    """Folded in place, one step a commit."""

    fleet: Fleet = field(default_factory=Fleet)
    registrations: Registrations = field(default_factory=Registrations)
    tokens: Tokens = field(default_factory=Tokens)
    names: dict[Aggregate, NameClaim] = field(default_factory=dict[Aggregate, NameClaim])
    requests: PendingRequests = field(default_factory=lambda: PendingRequests("registry"))
    turns: dict[RequestId, tuple[int, int]] = field(default_factory=dict[RequestId, tuple[int, int]])
    """Of each pending registration that is limited: which of its minute it was, by its token and in all."""
    removals: dict[NodeId, float] = field(default_factory=dict[NodeId, float])
    """When each removed node was removed, in seconds since the epoch."""
    expired: dict[NodeId, ExpiredNode] = field(default_factory=dict[NodeId, ExpiredNode])
    """Nodes that waited for approval too long."""
    approvals: dict[TokenId, set[NodeId]] = field(default_factory=dict[TokenId, set[NodeId]])
    """The nodes that each token approved, but those that were removed since."""
    cut_offs: dict[NodeId, float] = field(default_factory=dict[NodeId, float])
    """When each node that is cut off was, in seconds since the epoch."""
    certificate_keys: dict[NodeId, str] = field(default_factory=dict[NodeId, str])
    """The public key of each node's certificates; nodes without one are not in it."""
    written_off: set[NodeId] = field(default_factory=set[NodeId])
    """Nodes that were silent when an operator lifted the brake: taken for gone until they are healthy again."""
    drains: DrainState = field(default_factory=DrainState)
    founded: bool = False
    mesh_sequence: int = 0

    def apply(self, recorded: Recorded) -> None:
        """Fold one commit of the log; commits come in order."""
        self.fleet.apply(recorded)
        self.registrations.apply(recorded)
        match recorded.aggregate.kind:
            case "node":
                self._apply_node(NodeId(recorded.aggregate.key), recorded)
            case "run":
                ran_on, _, replica = recorded.aggregate.key.partition(".")
                self.drains.of_run(NodeId(ran_on), ReplicaId(replica), recorded)
            case "token":
                token = TokenId(recorded.aggregate.key)
                for fact in recorded.facts:
                    self.tokens.apply(token, cast(TokenFact, fact), recorded.sequence)
                self.tokens.moved(token, recorded.sequence)
            case "request":
                self._apply_request(recorded)
            case "name":
                self._apply_name(recorded)
            case "mesh":
                self._apply_mesh(recorded)
            case _:
                pass

    def _apply_node(self, id: NodeId, recorded: Recorded) -> None:
        for fact in recorded.facts:
            if isinstance(fact, Removed):
                self.removals[id] = recorded.at
                for approved in self.approvals.values():
                    approved.discard(id)
                self.cut_offs.pop(id, None)
                self.certificate_keys.pop(id, None)
            elif isinstance(fact, Expired):
                self.expired[id] = ExpiredNode(recorded.sequence, fact.signed_at)
                self.certificate_keys.pop(id, None)
            elif isinstance(fact, Approved) and TokenId(fact.by) in self.tokens.by_id:
                self.approvals.setdefault(TokenId(fact.by), set()).add(id)
            elif isinstance(fact, CutOff):
                self.cut_offs[id] = recorded.at
            elif isinstance(fact, Resumed):
                self.cut_offs.pop(id, None)
            elif isinstance(fact, Joined | Rejoined):
                self.expired.pop(id, None)
                self._apply_key(id, fact.certificate_key)
        self.drains.of_node(id, recorded)
        node = self.fleet.nodes.get(id)
        if node is None or node.removed or node.presence == "healthy":
            self.written_off.discard(id)

    def _apply_key(self, id: NodeId, key: str) -> None:
        if key:
            self.certificate_keys[id] = key
        else:
            self.certificate_keys.pop(id, None)

    def _apply_mesh(self, recorded: Recorded) -> None:
        self.mesh_sequence = recorded.sequence
        for fact in recorded.facts:
            if isinstance(fact, Founded):
                self.founded = True
            elif isinstance(fact, BrakeLifted) and fact.by:
                nodes = self.fleet.nodes.values()
                self.written_off.clear()
                self.written_off.update(node.id for node in nodes if not node.removed and node.presence == "unhealthy")

    def _apply_request(self, recorded: Recorded) -> None:
        self.requests.apply(recorded)
        id = RequestId(recorded.aggregate.key)
        for fact in recorded.facts:
            if isinstance(fact, JoinRequested) and self.registrations.counts(fact.public_key):
                self.turns[id] = self.registrations.pace.turn(fact.token)
        if id not in self.requests.waiting:
            self.turns.pop(id, None)

    def _apply_name(self, recorded: Recorded) -> None:
        claim = self.names.get(recorded.aggregate, NameClaim(None, 0))
        for fact in recorded.facts:
            match fact:
                case Claimed(owner=owner):
                    claim = replace(claim, owner=owner)
                case Released():
                    claim = replace(claim, owner=None)
                case _:
                    pass
        self.names[recorded.aggregate] = replace(claim, sequence=recorded.sequence)
