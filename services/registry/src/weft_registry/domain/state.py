"""All that the registry decides from, folded from the log."""

from dataclasses import dataclass, field, replace
from typing import cast

from weft_contracts.commit import Cause, Guard, Recorded
from weft_contracts.facts.mesh import BrakeLifted, Founded
from weft_contracts.facts.name import Claimed, Released
from weft_contracts.facts.node import Joined, Rejoined, Removed
from weft_contracts.facts.request import (
    ApprovalRequested,
    BrakeLiftRequested,
    CordonRequested,
    DrainRequested,
    Fulfilled,
    JoinRequested,
    LabelsRequested,
    Rejected,
    RejectionRequested,
    RemovalRequested,
    ReplicaCapRequested,
    ResumeRequested,
    TokenRequested,
    TokenRevocationRequested,
    UncordonRequested,
    VramBudgetRequested,
)
from weft_contracts.facts.token import TokenFact
from weft_contracts.ids import NodeId, ReplicaId, RequestId, TokenId
from weft_contracts.subjects import Aggregate
from weft_placement.fleet import Fleet

from weft_registry.domain.drains import Drains
from weft_registry.domain.tokens import Tokens

Asked = (
    JoinRequested
    | ApprovalRequested
    | RejectionRequested
    | CordonRequested
    | UncordonRequested
    | DrainRequested
    | ResumeRequested
    | LabelsRequested
    | ReplicaCapRequested
    | VramBudgetRequested
    | RemovalRequested
    | BrakeLiftRequested
    | TokenRequested
    | TokenRevocationRequested
)
"""Requests that the registry answers."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A request without an outcome. `sequence` is its aggregate's last commit."""

    fact: Asked
    aggregate: Aggregate
    actor: str
    cause: Cause
    """Of what follows from it."""
    at: float
    """When the log took it, in seconds since the epoch."""
    sequence: int

    @property
    def guard(self) -> Guard:
        """Holds as long as nobody has answered."""
        return Guard(self.aggregate, self.sequence)


@dataclass(frozen=True, slots=True)
class NameClaim:
    """A unique name: who bears it (None: free again), and its aggregate's last commit."""

    owner: str | None
    sequence: int


@dataclass(slots=True)
class RegistryState:
    """Folded in place, one step a commit."""

    fleet: Fleet = field(default_factory=Fleet)
    tokens: Tokens = field(default_factory=Tokens)
    names: dict[Aggregate, NameClaim] = field(default_factory=dict[Aggregate, NameClaim])
    pending: dict[RequestId, Pending] = field(default_factory=dict[RequestId, Pending])
    removals: dict[NodeId, float] = field(default_factory=dict[NodeId, float])
    """When each removed node was removed, in seconds since the epoch."""
    certificate_keys: dict[NodeId, str] = field(default_factory=dict[NodeId, str])
    """The public key of each node's certificates; nodes without one are not in it."""
    given_up: set[NodeId] = field(default_factory=set[NodeId])
    """Nodes that were silent when an operator lifted the brake, until they are healthy again."""
    drains: Drains = field(default_factory=Drains)
    founded: bool = False
    mesh_sequence: int = 0

    def apply(self, recorded: Recorded) -> None:
        """Fold one commit of the log; commits come in order."""
        self.fleet.apply(recorded)
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
                self.certificate_keys.pop(id, None)
            elif isinstance(fact, Joined | Rejoined):
                self._apply_key(id, fact.certificate_key)
        self.drains.of_node(id, recorded)
        node = self.fleet.nodes.get(id)
        if node is None or node.removed or node.presence == "healthy":
            self.given_up.discard(id)

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
                self.given_up.clear()
                self.given_up.update(node.id for node in nodes if not node.removed and node.presence == "unhealthy")

    def _apply_request(self, recorded: Recorded) -> None:
        id = RequestId(recorded.aggregate.key)
        for fact in recorded.facts:
            if isinstance(fact, Asked):
                self.pending[id] = Pending(
                    fact, recorded.aggregate, recorded.actor, recorded.cause, recorded.at, recorded.sequence
                )
            elif isinstance(fact, Fulfilled | Rejected):
                self.pending.pop(id, None)
        if id in self.pending:  # a commit without a readable fact moves it all the same
            self.pending[id] = replace(self.pending[id], sequence=recorded.sequence)

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
