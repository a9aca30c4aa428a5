"""Facts about API keys, by the gateway. The log holds a key's hash and never who bears it."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weft_contracts.facts.fact import Fact
from weft_contracts.facts.values import Scope
from weft_contracts.subjects import Kind


class _Key(Fact, frozen=True):
    kind: ClassVar[Kind] = "key"


class Created(_Key, frozen=True):
    """Whoever shows its secret may do what its scopes say."""

    type: Literal["created"] = "created"
    hash: str
    """SHA-256 of the secret, in hex."""
    prefix: str
    """The secret's public part: by it people tell keys apart."""
    scopes: tuple[Scope, ...]
    models: tuple[str, ...] | None = None
    """Names of the only models that it may use; None: all."""
    expires_at: float | None = None
    """Seconds since the epoch."""


class Revoked(_Key, frozen=True):
    """Nothing new begins with it; what runs, runs on."""

    type: Literal["revoked"] = "revoked"


KeyFact = Annotated[Created | Revoked, Field(discriminator="type")]
