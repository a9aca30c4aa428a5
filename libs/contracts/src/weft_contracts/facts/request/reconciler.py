"""What the reconciler answers: requests about models and aliases."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weft_contracts.aliases import AliasRule, AliasTargets
from weft_contracts.facts.fact import Versioned
from weft_contracts.facts.request.request import Request
from weft_contracts.facts.rollout import MaxSurge, MaxUnavailable, ProgressSeconds
from weft_contracts.facts.sizing import OwnScaling
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ModelId, NodeId


class DeployRequested(Versioned, Request, frozen=True):
    """A model, or a new revision of the model that bears this name."""

    type: Literal["deploy_requested"] = "deploy_requested"
    newest: ClassVar[int] = 5
    name: str
    spec: ModelSpec

    @property
    def needs(self) -> int:
        return self.spec.needs


class TrialRequested(Versioned, Request, frozen=True):
    """What would come of deploying this? Nodes are asked what they hold; nothing else changes."""

    type: Literal["trial_requested"] = "trial_requested"
    newest: ClassVar[int] = 5
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


class RollbackRequested(Request, frozen=True):
    """Serve a revision of before again, as a new one."""

    type: Literal["rollback_requested"] = "rollback_requested"
    model: ModelId
    to: Annotated[int, Field(ge=1)] | None = None
    """None: the last one before the newest of which a replica was ready."""


class UnloadRequested(Request, frozen=True):
    """Take a model off a node."""

    type: Literal["unload_requested"] = "unload_requested"
    model: ModelId
    node: NodeId
    deadline_s: Annotated[float, Field(ge=0)] = 60.0
    """How long what serves there may wait for others to serve in its place."""


class SchedulingRequested(Request, frozen=True):
    """How many replicas of a model there are to be, and on which nodes. What is None stays as it is, so that two who
    change different things at once lose nothing of each other."""

    type: Literal["scheduling_requested"] = "scheduling_requested"
    model: ModelId
    selector: Annotated[dict[str, str], Field(max_length=64)] | None = None
    min_replicas: Annotated[int, Field(ge=0)] | None = None
    max_replicas: Annotated[int, Field(ge=0)] | None = None
    spread_all: bool | None = None
    max_surge: MaxSurge | None = None
    max_unavailable: MaxUnavailable | None = None
    progress_s: ProgressSeconds | None = None
    scaling: OwnScaling | None = None
    """All of its own figures anew; an empty one: the mesh's."""


class ActivationRequested(Request, frozen=True):
    """A request waits for a model that sleeps: let there be a replica. A gateway asks by itself, for whoever may use
    the model."""

    type: Literal["activation_requested"] = "activation_requested"
    model: ModelId


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
    | RollbackRequested
    | UnloadRequested
    | SchedulingRequested
    | ActivationRequested
    | AliasRequested
    | AliasRemovalRequested
)
