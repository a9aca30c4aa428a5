"""Facts about registration tokens, by the registry. The log never holds a secret."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weft_contracts.facts.fact import Fact
from weft_contracts.subjects import Kind


class _Token(Fact, frozen=True):
    kind: ClassVar[Kind] = "token"


class Created(_Token, frozen=True):
    """With it a node may ask to join."""

    type: Literal["created"] = "created"
    hash: str
    """SHA-256 of the secret, in hex."""
    approves: bool
    """A node that joins with it is approved at once."""
    expires_at: float | None = None
    """Seconds since the epoch."""
    name: str = ""
    """What people call it; need not be unique."""
    most_waiting: int | None = None
    """So many nodes that joined with it may wait for approval at once, and so many may come within a minute; None: as
    many as the registry's settings say."""


class Revoked(_Token, frozen=True):
    """Nobody joins with it any more; who joined stays."""

    type: Literal["revoked"] = "revoked"


class Bound(_Token, frozen=True):
    """From here on it serves these keys alone."""

    type: Literal["bound"] = "bound"
    keys: tuple[str, ...]
    """nkey user keys, in order."""


TokenFact = Annotated[Created | Revoked | Bound, Field(discriminator="type")]
