"""Which nodes need the files of a model, and which have them: by this nodes ask one another, and nobody else."""

from dataclasses import dataclass
from typing import Final

from weft_contracts.ids import NodeId

from weft_fleet.assignments import Assignment
from weft_fleet.node_files import wants_files
from weft_fleet.tables import FleetTables

AHEAD: Final = 1 << 62
"""In the place of a sequence: the node is to have them whether a replica needs them or not."""


@dataclass(frozen=True, slots=True)
class FilesNeed:
    """Why a node needs files. `sequence` is the log's, of the first open assignment that names them, or `AHEAD`;
    `rests`: no process of its is at it now, as between two tries."""

    sequence: int
    rests: bool = False


def files_needed(fleet: FleetTables, files: str) -> dict[NodeId, FilesNeed]:
    """The nodes that need the files of a digest (`digest.files_digest`), whether they have them or not; first who
    needed them first.

    Needed is what an assignment names that stands and whose run has not failed. A run that has stopped under one is
    started again, so it needs them still. Who is to have them ahead of any replica's need comes behind these.
    """
    found: dict[NodeId, FilesNeed] = {}
    for model in fleet.naming.get(files, ()):
        of_revision, replicas = fleet.models[model].files, fleet.models[model].replicas
        for id in replicas:
            view = fleet.replicas[id]
            for member in view.members if of_revision.get(view.revision) == files else ():
                part, run = fleet.assignment(member.node, id), view.runs.get(member.node)
                if part is not None and not part.retiring and (run is None or run.phase != "failed"):
                    found[member.node] = _sooner(found.get(member.node), part)
    for id in fleet.told.get(files, ()):
        node = fleet.nodes[id]
        if id not in found and not node.removed and wants_files(node.file_wishes, files):
            found[id] = FilesNeed(AHEAD, files in node.file_wishes.faults)
    return dict(sorted(found.items(), key=lambda each: (each[1].sequence, each[0])))


def files_held(fleet: FleetTables, files: str) -> list[NodeId]:
    """The nodes on whose disks they lie, as their workers said and the log explains (`NodeView.holds`); by id."""
    return sorted(id for id in fleet.told.get(files, ()) if fleet.nodes[id].holds(files))


def _sooner(known: FilesNeed | None, part: Assignment) -> FilesNeed:
    if known is None:
        return FilesNeed(part.sequence, part.ended)
    return FilesNeed(min(known.sequence, part.sequence), known.rests and part.ended)
