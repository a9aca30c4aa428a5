"""What the OpenAPI document says of answers that the routes make by hand: problem bodies, and what a change brought."""

from typing import Any, Literal

from pydantic import BaseModel

from weft_gateway.domain.problems import PROBLEM


class Problem(BaseModel):
    """RFC 9457: what was wrong, in one sentence."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    """What, where, what would be right."""
    code: str | None = None
    param: str | None = None
    request: str | None = None
    """The request for change that was rejected, or has no outcome yet."""


class Changed(BaseModel):
    """A change that is in the log."""

    request: str


class NodeChanged(Changed):
    """A node that was changed."""

    node: str


class NodeLeaves(NodeChanged):
    """A node that is removed, or drains to be removed."""

    state: Literal["draining", "removed"]


class Unloaded(NodeChanged):
    """A model that is taken off a node."""

    model: str
    replicas: str
    """The replicas that go, by id, with spaces between them; empty: none was there."""


class TokenChanged(Changed):
    """A registration token that was changed."""

    token: str


class KeyChanged(Changed):
    """An API key that was changed."""

    key: str


class KeyMade(KeyChanged):
    """A new API key."""

    secret: str | None
    """Shown this once; null where the same Idempotency-Key has made the key before."""


class NameErased(BaseModel):
    """A key whose name nobody knows any more."""

    key: str


class TokenMade(TokenChanged):
    """A new registration token."""

    secret: str | None
    """Shown this once; null where the same Idempotency-Key has made the token before."""


_PROBLEM: dict[str, Any] = {
    "description": "A problem, in one sentence",
    "content": {PROBLEM: {"schema": Problem.model_json_schema()}},
}
PROBLEMS: dict[int | str, dict[str, Any]] = {"4XX": _PROBLEM, "5XX": _PROBLEM}
"""For the routers of routes that change something."""
