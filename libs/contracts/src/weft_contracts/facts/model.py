"""Facts about a model and how many replicas it should have, by the reconciler."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weft_contracts.facts.fact import Fact, Versioned
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import NodeId, ReplicaId
from weft_contracts.subjects import Kind


class _Model(Fact, frozen=True):
    kind: ClassVar[Kind] = "model"


class SpecAccepted(Versioned, _Model, frozen=True):
    """A new revision. The first one makes the model."""

    type: Literal["spec_accepted"] = "spec_accepted"
    newest: ClassVar[int] = 4
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


class Unservable(_Model, frozen=True):
    """It failed for good, or everywhere. Nothing is tried until an admin says so."""

    type: Literal["unservable"] = "unservable"
    revision: int
    reason: str
    recipe: Annotated[str, Field(max_length=64)] = ""
    """Digest of what its engine ran in, where only that failed: the revision goes on in what it served in before.
    Empty: the revision itself."""


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


class Deleted(_Model, frozen=True):
    """No longer wanted; its replicas are retired in the same commit."""

    type: Literal["deleted"] = "deleted"


ModelFact = Annotated[SpecAccepted | Scaled | Unservable | Retried | Unloaded | Deleted, Field(discriminator="type")]
