"""What the reconciler answers: requests about models and aliases."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weft_contracts.aliases import AliasRule, AliasTargets
from weft_contracts.facts.fact import Versioned
from weft_contracts.facts.request.request import Request
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ModelId, NodeId


class DeployRequested(Versioned, Request, frozen=True):
    """A model, or a new revision of the model that bears this name."""

    type: Literal["deploy_requested"] = "deploy_requested"
    newest: ClassVar[int] = 4
    name: str
    spec: ModelSpec

    @property
    def needs(self) -> int:
        return self.spec.needs


class TrialRequested(Versioned, Request, frozen=True):
    """What would come of deploying this? Nodes are asked what they hold; nothing else changes."""

    type: Literal["trial_requested"] = "trial_requested"
    newest: ClassVar[int] = 4
    name: str
    spec: ModelSpec

    @property
    def needs(self) -> int:
        return self.spec.needs


class DeleteRequested(Request, frozen=True):
    type: Literal["delete_requested"] = "delete_requested"
    model: ModelId


class RetryRequested(Request, frozen=True):
    """Lift `unservable` from a model."""

    type: Literal["retry_requested"] = "retry_requested"
    model: ModelId


class UnloadRequested(Request, frozen=True):
    """Take a model off a node."""

    type: Literal["unload_requested"] = "unload_requested"
    model: ModelId
    node: NodeId
    deadline_s: Annotated[float, Field(ge=0)] = 60.0
    """How long what serves there may wait for others to serve in its place."""


class AliasRequested(Request, frozen=True):
    """Let a name be an alias over these models; what it was an alias of before is replaced whole."""

    type: Literal["alias_requested"] = "alias_requested"
    name: str
    rule: AliasRule
    targets: AliasTargets


class AliasRemovalRequested(Request, frozen=True):
    """Let a name be no alias any more. Its models stay."""

    type: Literal["alias_removal_requested"] = "alias_removal_requested"
    name: str


ReconcilerRequest = (
    DeployRequested
    | TrialRequested
    | DeleteRequested
    | RetryRequested
    | UnloadRequested
    | AliasRequested
    | AliasRemovalRequested
)
