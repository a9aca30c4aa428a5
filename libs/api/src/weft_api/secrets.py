"""Answers about API keys and registration tokens. Times are seconds since the epoch."""

from typing import Literal

from typing_extensions import TypedDict
from weft_contracts.facts.values import Scope

SecretState = Literal["live", "expired", "revoked"]


class Key(TypedDict):
    """An API key as it is listed: without its secret. `name` is null where it was erased or can't be had."""

    id: str
    name: str | None
    prefix: str
    scopes: list[Scope]
    models: list[str] | None
    state: SecretState
    expires_at: float | None
    created_at: float
    created_by: str
    revoked_at: float | None


class KeyPage(TypedDict):
    """Keys by id, and the cursor of the next page."""

    items: list[Key]
    next: str | None


class Token(TypedDict):
    """A registration token as it is listed: without its secret. `auto_approve`: who joins with it may work at once;
    `most_waiting`: so many may wait for approval, null: as many as the settings say."""

    id: str
    name: str
    state: SecretState
    auto_approve: bool
    expires_at: float | None
    created_at: float
    most_waiting: int | None


class TokenPage(TypedDict):
    """Tokens by id, and the cursor of the next page."""

    items: list[Token]
    next: str | None
