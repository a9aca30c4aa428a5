"""All that the registry decides from, folded from the log."""

from dataclasses import dataclass, field, replace
from typing import cast

from weft_contracts.commit import Cause, Guard, Recorded
from weft_contracts.facts.mesh import Founded
from weft_contracts.facts.name import Claimed, Released
from weft_contracts.facts.request import ApprovalRequested, Fulfilled, JoinRequested, Rejected
from weft_contracts.facts.token import TokenFact
from weft_contracts.ids import RequestId, TokenId
from weft_contracts.subjects import Aggregate
from weft_placement.fleet import Fleet

from weft_registry.domain.tokens import Tokens

Asked = JoinRequested | ApprovalRequested
"""Requests that the registry answers."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A request without an outcome. `sequence` is its aggregate's last commit."""

    fact: Asked
    aggregate: Aggregate
    actor: str
    cause: Cause
    """Of what follows from it."""
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
    founded: bool = False
    mesh_sequence: int = 0

    def apply(self, recorded: Recorded) -> None:
        """Fold one commit of the log; commits come in order."""
        self.fleet.apply(recorded)
        match recorded.aggregate.kind:
            case "token":
                for fact in recorded.facts:
                    self.tokens.apply(TokenId(recorded.aggregate.key), cast(TokenFact, fact), recorded.sequence)
            case "request":
                self._apply_request(recorded)
            case "name":
                self._apply_name(recorded)
            case "mesh":
                self.mesh_sequence = recorded.sequence
                self.founded = self.founded or any(isinstance(fact, Founded) for fact in recorded.facts)
            case _:
                pass

    def _apply_request(self, recorded: Recorded) -> None:
        id = RequestId(recorded.aggregate.key)
        for fact in recorded.facts:
            match fact:
                case JoinRequested() | ApprovalRequested():
                    self.pending[id] = Pending(
                        fact, recorded.aggregate, recorded.actor, recorded.cause, recorded.sequence
                    )
                case Fulfilled() | Rejected():
                    self.pending.pop(id, None)
                case _:
                    pass
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
