"""What gateways answer themselves: requests about API keys."""

from typing import Annotated, Literal

from pydantic import Field

from weft_contracts.facts.request.request import Request
from weft_contracts.facts.values import Scope
from weft_contracts.ids import KeyId


class KeyRequested(Request, frozen=True):
    """A new API key. Its secret stays with who asked, its name with the bucket `people`."""

    type: Literal["key_requested"] = "key_requested"
    key: KeyId
    hash: str
    """SHA-256 of the secret, in hex."""
    prefix: str
    scopes: tuple[Scope, ...]
    models: tuple[str, ...] | None = None
    """None: all."""
    lasts_s: Annotated[float, Field(gt=0)] | None = None
    """Seconds from the request; None: until it is revoked."""


class KeyRevocationRequested(Request, frozen=True):
    """Let nothing new begin with an API key."""

    type: Literal["key_revocation_requested"] = "key_revocation_requested"
    key: KeyId


GatewayRequest = KeyRequested | KeyRevocationRequested
