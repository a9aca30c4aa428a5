"""A model: its revisions and how far its replicas are counted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from weft_contracts.commit import Cause
from weft_contracts.facts.model import ModelFact
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ModelId, ReplicaId

from weft_placement.fleet.changed import changed


@dataclass(frozen=True)
class ModelView:
    """One model, from its first `spec_accepted`."""

    id: ModelId
    name: str
    revision: int
    digest: str
    spec: ModelSpec
    """Of the newest revision."""
    specs: Mapping[int, tuple[str, ModelSpec]]
    """Digest and spec of every revision."""
    cause: Cause
    """Of its last commit: what its own rules decide next follows from it."""
    sequence: int = 0
    deleted: bool = False
    unservable: str | None = None
    next_number: int = 1
    """The number of the next replica that is ever added."""
    replicas: dict[ReplicaId, None] = field(default_factory=dict[ReplicaId, None])
    """Replicas that are wanted or still hold a claim, oldest first. The index changes it in place."""


def evolve_model(id: ModelId, view: ModelView | None, fact: ModelFact, cause: Cause) -> ModelView | None:
    """The model after one of its facts. Nothing before `spec_accepted` makes a model."""
    if fact.type == "spec_accepted":
        of_fact = {fact.revision: (fact.digest, fact.spec)}
        if view is None:
            return ModelView(id, fact.name, fact.revision, fact.digest, fact.spec, of_fact, cause)
        return changed(
            view,
            name=fact.name,
            revision=fact.revision,
            digest=fact.digest,
            spec=fact.spec,
            specs={**view.specs, **of_fact},
            deleted=False,
            unservable=None,
            cause=cause,
        )
    if view is None:
        return None
    match fact.type:
        case "scaled":
            numbers = [number_of(replica) + 1 for replica in fact.add]
            return changed(view, next_number=max([view.next_number, *numbers]), cause=cause)
        case "unservable":
            return changed(view, unservable=fact.reason, cause=cause)
        case "retried":
            return changed(view, unservable=None, cause=cause)
        case "deleted":
            return changed(view, deleted=True, cause=cause)
        case "unloaded":  # who goes is said by what follows: `scaled`
            return changed(view, cause=cause)
        case _:
            assert_never(fact)


def number_of(replica: ReplicaId) -> int:
    """The number in a replica's id `<model>-<n>`. Raises ValueError if there is none."""
    return int(replica.rpartition("-")[2])
