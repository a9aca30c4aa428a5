"""Registration tokens as the log has them: hashes, never secrets."""

from dataclasses import dataclass, field, replace
from typing import assert_never

from weft_contracts.facts.token import Bound, Created, Revoked, TokenFact
from weft_contracts.ids import TokenId


@dataclass(frozen=True, slots=True)
class Token:
    """One token. `sequence` is its aggregate's last commit."""

    hash: str
    approves: bool
    expires_at: float | None
    revoked: bool
    sequence: int
    most_waiting: int | None = None
    """As in `token.created`."""
    keys: tuple[str, ...] | None = None
    """The only keys that it serves; None: all."""

    def live(self, now: float) -> bool:
        """Whether a node may still ask to join with it."""
        return not self.revoked and (self.expires_at is None or now < self.expires_at)

    def serves(self, public_key: str) -> bool:
        """Whether the node with this key may show it."""
        return self.keys is None or public_key in self.keys


def evolve(token: Token | None, fact: TokenFact, sequence: int) -> Token | None:
    """A token after one of its facts."""
    match fact:
        case Created(hash=hash, approves=approves, expires_at=expires_at, most_waiting=most):
            return Token(hash, approves, expires_at, revoked=False, sequence=sequence, most_waiting=most)
        case Bound(keys=keys):
            return replace(token, keys=keys, sequence=sequence) if token else None
        case Revoked():
            return replace(token, revoked=True, sequence=sequence) if token else None
        case _:
            assert_never(fact)


@dataclass(slots=True)
class Tokens:
    """All tokens by id."""

    by_id: dict[TokenId, Token] = field(default_factory=dict[TokenId, Token])

    def apply(self, id: TokenId, fact: TokenFact, sequence: int) -> None:
        token = evolve(self.by_id.get(id), fact, sequence)
        if token is not None:
            self.by_id[id] = token

    def moved(self, id: TokenId, sequence: int) -> None:
        """A commit of the token's, also one without a readable fact."""
        if id in self.by_id:
            self.by_id[id] = replace(self.by_id[id], sequence=sequence)
