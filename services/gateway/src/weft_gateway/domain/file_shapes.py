"""What the API shows of models' files: which there are, where they lie, and where they are to lie."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import weft_api as api
from weft_contracts.facts.source import FetchedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import NodeId, ReplicaId
from weft_contracts.signals import FetchSaid
from weft_contracts.source_keys import told_source
from weft_fleet import Fleet, ModelView, NodeView
from weft_fleet.files_used import FilesNamed
from weft_fleet.last_copies import LastCopies, last_copies
from weft_fleet.live_revisions import live_revisions

from weft_gateway.domain.progress_board import ProgressBoard
from weft_gateway.domain.progress_shapes import OTHERS_FIRST, fetch_shape

MOST_WISHES: Final = 256
Users = list[tuple[ModelView, int]]
"""Models with the number of a revision."""


def files_users(fleet: Fleet, model: ModelView, named: FilesNamed) -> Iterator[tuple[str, int]]:
    """The files of a model's live revisions. Costs a digest for each new one."""
    for revision in sorted(live_revisions(fleet, model)):
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
    kept = last_copies(fleet, files)
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
        nodes.append(_on_node(fleet, board, files, node, used.get(id, []), kept))
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


def wishes_shape(fleet: Fleet, board: ProgressBoard) -> list[api.WantedFiles]:
    """Files that nodes are to have ahead of need and lack, those that can't be had first; 256 at most. Costs a look at
    every node."""
    found: list[api.WantedFiles] = []
    for node in fleet.nodes.values():
        for files, wanted in () if node.removed else node.file_wishes.wanted.items():
            if files not in node.fetched:
                stands = _stands(fleet, board, files, node, [])
                found.append(
                    {
                        "files": files,
                        "name": wanted.model_name,
                        "source": told_source(wanted.source),
                        "node": node.id,
                        "node_name": node.name,
                        "state": stands.state,
                        "about": stands.about or "",
                    }
                )
    found.sort(key=lambda each: (each["state"] != "failed", each["node_name"], each["name"]))
    return found[:MOST_WISHES]


class _Stands(NamedTuple):
    state: api.FilesState
    about: str | None
    said: FetchSaid | None
    fault: str | None


def _stands(
    fleet: Fleet,
    board: ProgressBoard,
    files: str,
    node: NodeView,
    used: list[ReplicaId],
    kept: LastCopies | None = None,
) -> _Stands:
    """How files stand on a node, in one word, and in one sentence where there is something to say."""
    if files in node.fetched:
        last = kept is not None and files not in node.file_wishes.wanted and kept.stays(node)
        why = f"the last copy of what was sent, kept while {kept.model} is deployed" if kept and last else None
        return _Stands("here", why, None, None)
    if (said := _said(board, node.id, files)) is not None:
        return _Stands("coming", fetch_shape(node.id, said)["about"], said, None)
    if (fault := _fault(fleet, node, files, used)) is not None:
        return _Stands("failed", f"the last try failed: {fault}", None, fault)
    if node.state != "healthy":
        return _Stands("wanted", f"its node is {node.state.replace('_', ' ')}", None, None)
    busy = board.of(node.id)
    return _Stands("wanted", OTHERS_FIRST if busy is not None and busy.fetches else "not begun yet", None, None)


def _on_node(
    fleet: Fleet, board: ProgressBoard, files: str, node: NodeView, used: list[ReplicaId], kept: LastCopies | None
) -> api.FilesOnNode:
    wishes, stands = node.file_wishes, _stands(fleet, board, files, node, used, kept)
    said = stands.said
    return {
        "node": node.id,
        "node_name": node.name,
        "state": stands.state,
        "fetched": node.fetched.get(files, said.fetched if said is not None else 0),
        "pinned": files in wishes.wanted,
        "leaves": wishes.retired.get(files, False),
        "since": node.fetched_at.get(files),
        "used_by": [*used],
        "fault": stands.fault,
        "about": stands.about,
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
