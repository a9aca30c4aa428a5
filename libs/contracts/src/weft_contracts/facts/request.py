"""Requests for change, by the gateway; their outcomes, by the services that own what they ask for."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weft_contracts.facts.fact import Fact
from weft_contracts.facts.values import Addresses, ModelSpec
from weft_contracts.ids import ModelId, NodeId, TokenId
from weft_contracts.subjects import Kind


class _Request(Fact, frozen=True):
    kind: ClassVar[Kind] = "request"


class JoinRequested(_Request, frozen=True):
    """A machine asks to join. The gateway has checked its token."""

    type: Literal["join_requested"] = "join_requested"
    token: TokenId
    name: str
    public_key: str
    addresses: Addresses
    labels: dict[str, str] = {}


class ApprovalRequested(_Request, frozen=True):
    type: Literal["approval_requested"] = "approval_requested"
    node: NodeId


class DeployRequested(_Request, frozen=True):
    """A model, or a new revision of the model that bears this name."""

    type: Literal["deploy_requested"] = "deploy_requested"
    name: str
    spec: ModelSpec


class TrialRequested(_Request, frozen=True):
    """What would come of deploying this? Nodes are asked what they hold; nothing else changes."""

    type: Literal["trial_requested"] = "trial_requested"
    name: str
    spec: ModelSpec


class DeleteRequested(_Request, frozen=True):
    type: Literal["delete_requested"] = "delete_requested"
    model: ModelId


class RetryRequested(_Request, frozen=True):
    """Lift `unservable` from a model."""

    type: Literal["retry_requested"] = "retry_requested"
    model: ModelId


class Fulfilled(_Request, frozen=True):
    """Done, in the same batch as this. `result` names what arose."""

    type: Literal["fulfilled"] = "fulfilled"
    result: dict[str, str] = {}


class Rejected(_Request, frozen=True):
    """Refused; nothing changed."""

    type: Literal["rejected"] = "rejected"
    status: int
    """The HTTP status that says it best: 400, 404, 409, 422, 503."""
    reason: str
    """One sentence: what, where, what would be right."""


RequestFact = Annotated[
    JoinRequested
    | ApprovalRequested
    | DeployRequested
    | TrialRequested
    | DeleteRequested
    | RetryRequested
    | Fulfilled
    | Rejected,
    Field(discriminator="type"),
]
