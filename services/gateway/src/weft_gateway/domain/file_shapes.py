"""What the API shows of models' files: which there are, where they lie, and where they are to lie."""

from collections.abc import Iterator

import weft_api as api
from weft_contracts.facts.source import FetchedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import NodeId, ReplicaId
from weft_contracts.signals import FetchSaid
from weft_contracts.source_keys import told_source
from weft_fleet import Fleet, ModelView, NodeView
from weft_fleet.files_used import FilesNamed

from weft_gateway.domain.progress_board import ProgressBoard
from weft_gateway.domain.progress_shapes import fetch_shape

Users = list[tuple[ModelView, int]]
"""Models with the number of a revision."""


def files_users(fleet: Fleet, model: ModelView, named: FilesNamed) -> Iterator[tuple[str, int]]:
    """The files of a model's live revisions: the newest, and those with replicas. Costs a digest for each new one."""
    revisions = {fleet.replicas[id].revision for id in model.replicas}
    if not model.deleted:
        revisions.add(model.revision)
    for revision in sorted(revisions):
        if files := named.of(model, revision):
            yield files, revision


def known_files(fleet: Fleet, users: dict[str, Users]) -> list[str]:
    """All that there are, in order."""
    found = set(users)
    for node in fleet.nodes.values():
        if not node.removed:
            found.update(node.fetched, node.file_wishes.wanted)
    return sorted(found)


def files_shape(fleet: Fleet, board: ProgressBoard, files: str, users: Users) -> api.ModelFiles:
    """One model's files. Costs a look at every node."""
    specs = [model.specs[revision][1] for model, revision in users]
    used = _used(fleet, users)
    nodes: list[api.FilesOnNode] = []
    size, source = _of_spec(specs)
    for id, node in fleet.nodes.items():
        if node.removed or not (files in node.fetched or files in node.file_wishes.wanted or id in used):
            continue
        wanted = node.file_wishes.wanted.get(files)
        if wanted is not None:
            size, source = size or wanted.bytes, source or told_source(wanted.source)
        size = size or node.fetched.get(files, 0)
        nodes.append(_on_node(fleet, board, files, node, used.get(id, [])))
    return {
        "files": files,
        "source": source,
        "models": sorted({model.name for model, _ in users if not model.deleted}),
        "bytes": size,
        "nodes": sorted(nodes, key=lambda each: each["node_name"]),
    }


def _of_spec(specs: list[ModelSpec]) -> tuple[int, str | None]:
    for spec in specs:
        if isinstance(spec.source, FetchedSource):
            return sum(file.size for file in spec.files), told_source(spec.source)
    return 0, None


def _used(fleet: Fleet, users: Users) -> dict[NodeId, list[ReplicaId]]:
    """Replicas that run, or are to run, from the files of these revisions, by node."""
    found: dict[NodeId, list[ReplicaId]] = {}
    for model, revision in users:
        for id in model.replicas:
            view = fleet.replicas[id]
            for member in view.members if view.revision == revision else ():
                part = fleet.assignment(member.node, id)
                if part is not None and part.holds:
                    found.setdefault(member.node, []).append(id)
    return found


def _on_node(fleet: Fleet, board: ProgressBoard, files: str, node: NodeView, used: list[ReplicaId]) -> api.FilesOnNode:
    wishes, here = node.file_wishes, files in node.fetched
    said = None if here else _said(board, node.id, files)
    fault = None if here or said is not None else _fault(fleet, node, files, used)
    state: api.FilesState = "here" if here else "coming" if said is not None else "failed" if fault else "wanted"
    return {
        "node": node.id,
        "node_name": node.name,
        "state": state,
        "fetched": node.fetched.get(files, said.fetched if said is not None else 0),
        "pinned": files in wishes.wanted,
        "leaves": wishes.retired.get(files, False),
        "since": node.fetched_at.get(files),
        "used_by": [*used],
        "fault": fault,
        "progress": fetch_shape(node.id, said) if said is not None else None,
    }


def _said(board: ProgressBoard, node: NodeId, files: str) -> FetchSaid | None:
    said = board.of(node)
    return next((each for each in said.fetches if each.files == files), None) if said is not None else None


def _fault(fleet: Fleet, node: NodeView, files: str, used: list[ReplicaId]) -> str | None:
    """Why the last try ended, of the wish or of a replica that waits for them."""
    fault = node.file_wishes.faults.get(files)
    if fault is not None:
        return fault.reason
    runs = (fleet.replicas[id].runs.get(node.id) for id in used)
    return next((run.last_end for run in runs if run is not None and run.last_end), None)
