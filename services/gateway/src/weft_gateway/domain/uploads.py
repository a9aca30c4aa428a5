"""Which node a file is sent to, from the log: the first whose replica waits for the files of its model."""

from collections.abc import Iterator
from dataclasses import dataclass

from weft_contracts.facts.source import SourceFile, UploadSource
from weft_fleet import Fleet, ModelView, NodeView, ReplicaView
from weft_fleet.files_needed import files_held

from weft_gateway.domain.refused import Refused
from weft_gateway.domain.unavailability import why_unavailable

_PAST_FILES = ("loading", "ready", "degraded")
"""Phases of a run whose files are on its node."""
SOON = {"retry-after": "1"}


@dataclass(frozen=True, slots=True)
class Destination:
    """A file of an upload, and the node that waits for it; None: its model's files are in the mesh."""

    file: SourceFile
    node: NodeView | None


def destination(fleet: Fleet, files: str, name: str) -> Destination:
    """Where a file goes, by its model's `files_digest`. A replica that waits for it gets it, whoever says to have it.

    Raises Refused: 404 for what no model lists, 409 where no replica can wait for it, 503 where none does yet.
    """
    named = (fleet.models[id] for id in fleet.naming.get(files, ()))
    models = [model for model in named if not model.deleted and any(_revisions(model, files))]
    file = next((each for model in models for each in _listed(model, files) if each.name == name), None)
    if file is None:
        what = f"No model waits for a file {name[:80]!r} that is sent as {files[:32]!r}; deploy it first."
        raise Refused(404, what, code="upload_not_found")
    waiting: list[tuple[int, NodeView]] = []
    for replica in (each for model in models for each in _replicas(fleet, model, files)):
        for member in replica.members:
            node, run = fleet.nodes.get(member.node), replica.runs.get(member.node)
            assignment = fleet.assignment(member.node, replica.id)
            if node is None or run is None or assignment is None or not _reachable(node):
                continue
            if run.phase in _PAST_FILES:
                return Destination(file, None)
            if run.phase == "fetching":
                waiting.append((assignment.sequence, node))
    if not waiting and any(_reachable(fleet.nodes[id]) for id in files_held(fleet, files)):
        return Destination(file, None)
    if not waiting:
        raise _nobody(fleet, models[0], files)
    return Destination(file, min(waiting, key=lambda each: (each[0], each[1].id))[1])


def _nobody(fleet: Fleet, model: ModelView, files: str) -> Refused:
    why = why_unavailable(model, list(_replicas(fleet, model, files)), fleet.nodes.values(), fleet.rooms)
    if why.permanent or why.sleeps:
        return Refused(409, why.sentence, code="upload_no_place")
    return Refused(503, f"No node waits for these files yet. {why.sentence}", code="upload_not_awaited", headers=SOON)


def _revisions(model: ModelView, files: str) -> Iterator[int]:
    """Those that are sent as this, of the newest and the kept one."""
    numbers = {model.revision} | ({model.kept.number} if model.kept is not None else set[int]())
    for number in sorted(numbers, reverse=True):
        if model.files.get(number) == files and isinstance(model.of(number).spec.source, UploadSource):
            yield number


def _listed(model: ModelView, files: str) -> tuple[SourceFile, ...]:
    return next(model.of(number).spec.files for number in _revisions(model, files))


def _replicas(fleet: Fleet, model: ModelView, files: str) -> Iterator[ReplicaView]:
    """Those that are wanted, of revisions that are sent as this."""
    numbers = [model.of(number) for number in _revisions(model, files)]
    for id in model.replicas:
        replica = fleet.replicas.get(id)
        if replica is None or not replica.wanted or replica.evicted or replica.revision not in model.specs:
            continue
        if any(model.of(replica.revision).runs_as(each) for each in numbers):
            yield replica


def _reachable(node: NodeView) -> bool:
    return not node.removed and node.presence == "healthy"
