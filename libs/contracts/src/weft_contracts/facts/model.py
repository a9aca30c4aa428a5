"""Facts about a model and how many replicas it should have, by the reconciler; that it gives way, by the scheduler."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weft_contracts.facts.fact import Fact, Versioned
from weft_contracts.facts.rollout import ReconcilingReceipt, RolloutRules
from weft_contracts.facts.sizing import OwnScaling, SizingReceipt
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import NodeId, ReplicaId
from weft_contracts.subjects import Kind


class _Model(Fact, frozen=True):
    kind: ClassVar[Kind] = "model"


class SpecAccepted(Versioned, _Model, frozen=True):
    """A new revision. The first one makes the model."""

    type: Literal["spec_accepted"] = "spec_accepted"
    newest: ClassVar[int] = 5
    name: str
    revision: int
    digest: str
    spec: ModelSpec

    @property
    def needs(self) -> int:
        return self.spec.needs


class Scaled(_Model, frozen=True):
    """Replicas are wanted (`add`) or no longer wanted (`retire`). They arise and end through this."""

    type: Literal["scaled"] = "scaled"
    revision: int
    add: tuple[ReplicaId, ...] = ()
    retire: tuple[ReplicaId, ...] = ()
    avoid: tuple[str, ...] = ()
    """Nodes where the added ones must not go: an earlier one failed there."""
    why: str
    wanted: Annotated[int | None, Field(exclude_if=lambda wanted: wanted is None)] = None
    """How many of this revision there should be, by what was known at `position`: so many make one that leaves its
    number open established in the place of another. None: nobody counted, or it was written before this was told."""
    position: Annotated[int, Field(exclude_if=lambda position: not position)] = 0
    """The log's last sequence that it was decided on."""
    receipt: Annotated[ReconcilingReceipt | None, Field(exclude_if=lambda receipt: receipt is None)] = None
    """None: it was written before receipts were."""


class Sized(_Model, frozen=True):
    """So many replicas should serve, by what there is to do: never fewer than the spec's minimum nor more than its
    maximum, whatever stands here. Who doesn't know this goes by the minimum."""

    type: Literal["sized"] = "sized"
    replicas: Annotated[int, Field(ge=0, le=100_000)]
    was: Annotated[int, Field(ge=0, le=100_000)]
    places: Annotated[int, Field(ge=1, le=100_000)]
    """Requests that one replica was seen to run when all were busy; as many as its spec says, where it ran those.
    Whether fewer replicas would do is judged by it."""
    why: str
    receipt: SizingReceipt


class Unservable(_Model, frozen=True):
    """It failed for good, or everywhere. Nothing is tried until an admin says so."""

    type: Literal["unservable"] = "unservable"
    revision: int
    reason: str
    recipe: Annotated[str, Field(max_length=64)] = ""
    """Digest of what its engine ran in, where only that failed: the revision goes on in what it served in before.
    Empty: the revision itself."""


class RolloutSet(_Model, frozen=True):
    """How its next revisions take the place of the ones before. Who doesn't know this goes by the defaults."""

    type: Literal["rollout_set"] = "rollout_set"
    rules: RolloutRules


class ScalingSet(_Model, frozen=True):
    """The figures of its own that it is sized by. Who doesn't know this goes by the mesh's."""

    type: Literal["scaling_set"] = "scaling_set"
    own: OwnScaling


class RolledBack(_Model, frozen=True):
    """A revision is taken back for one before it. What that changes is said beside it in the same commit:
    `unservable` where it didn't become ready, `spec_accepted` where somebody asked for it."""

    type: Literal["rolled_back"] = "rolled_back"
    revision: int
    """The one that is taken back."""
    to: int
    """The one whose spec is served again."""
    why: str
    receipt: ReconcilingReceipt


class Retried(_Model, frozen=True):
    """An admin lifted `unservable`."""

    type: Literal["retried"] = "retried"


class Unloaded(_Model, frozen=True):
    """An admin wants it off a node: its replicas there are replaced elsewhere, where a minimum asks for them."""

    type: Literal["unloaded"] = "unloaded"
    node: NodeId
    replicas: tuple[ReplicaId, ...]
    deadline_s: Annotated[float, Field(ge=0)]
    """How long those that serve may wait for others to serve in their place."""


class GaveWay(_Model, frozen=True):
    """Replicas of it end so that another model's gets a place: `replica.evicted` says it of each, in the same batch.

    Under this the model has moved, so that whoever took replicas off it by what it was before has to look again. Who
    doesn't know this goes by `evicted` alone.
    """

    type: Literal["gave_way"] = "gave_way"
    replicas: tuple[ReplicaId, ...] = ()
    waiting: ReplicaId = ReplicaId("")
    """The replica that the room is for."""


class Deleted(_Model, frozen=True):
    """No longer wanted; by this all its replicas are retired."""

    type: Literal["deleted"] = "deleted"


ModelFact = Annotated[
    SpecAccepted
    | Scaled
    | Sized
    | Unservable
    | RolloutSet
    | ScalingSet
    | RolledBack
    | Retried
    | Unloaded
    | GaveWay
    | Deleted,
    Field(discriminator="type"),
]
