"""Which models' files replicas use where, and what those files are called. No part of the fold: asked by few."""

from collections.abc import Iterator
from typing import Final

from weft_contracts.digest import files_digest
from weft_contracts.facts.source import FetchedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ModelId, NodeId, ReplicaId

from weft_fleet.fleet import Fleet
from weft_fleet.model_view import ModelView

_KEPT: Final = 4096


class FilesNamed:
    """Digests of the files of models' revisions, each made once, as a list of files is long."""

    def __init__(self) -> None:
        self._made: dict[tuple[ModelId, int], tuple[ModelSpec, str]] = {}

    def of(self, model: ModelView, revision: int) -> str:
        """The `digest.files_digest` of a revision; empty where workers fetch no files for it."""
        found = model.specs.get(revision)
        if found is None or not isinstance(found[1].source, FetchedSource):
            return ""
        spec, key = found[1], (model.id, revision)
        made = self._made.get(key)
        if made is None or made[0] is not spec:
            if len(self._made) >= _KEPT:
                self._made.clear()
            made = self._made[key] = spec, files_digest(spec)
        return made[1]


def spec_with(fleet: Fleet, files: str, named: FilesNamed) -> tuple[ModelView, ModelSpec] | None:
    """A model that is deployed and names these files, in its newest revision if it can be; None: none does."""
    for model in fleet.models.values():
        if not model.deleted:
            for revision in sorted(model.specs, reverse=True):
                if named.of(model, revision) == files:
                    return model, model.specs[revision][1]
    return None


def replicas_using(fleet: Fleet, node: NodeId, files: str, named: FilesNamed) -> Iterator[ReplicaId]:
    """Replicas that hold a claim on a node and run, or are to run, from these files."""
    for id, assignment in fleet.assigned(node).assignments.items():
        model = fleet.models.get(assignment.model)
        if assignment.holds and model is not None and named.of(model, assignment.revision) == files:
            yield id
