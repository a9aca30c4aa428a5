"""Which models' files nodes are to have and keep though no replica there needs them, and which are to go."""

from collections.abc import Iterable
from typing import Final

from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.digest import files_digest
from weft_contracts.facts.node import FilesRetired, FilesWanted
from weft_contracts.facts.request import (
    FilesFetchRequested,
    FilesPinRequested,
    FilesRemovalRequested,
    FilesUnpinRequested,
)
from weft_contracts.facts.request.registry import MOST_FILE_NODES
from weft_contracts.facts.source import FetchedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import NodeId
from weft_contracts.source_keys import told_source
from weft_contracts.subjects import node as node_of
from weft_fleet import NodeView
from weft_fleet.files_used import FilesNamed, replicas_using, spec_with
from weft_placement.filters.disk import room_for, room_left, told_room
from weft_placement.fit.option import gib
from weft_requests import PendingRequest

from weft_registry.domain.state import RegistryState

MOST_WANTED: Final = 256
"""Models whose files one node is to have ahead of need at most."""


class _Refused(Exception):
    """With an HTTP status, and a sentence."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def fetch_files(state: RegistryState, pending: PendingRequest, fact: FilesFetchRequested) -> Decision:
    """Nodes are to have the files of a model's present spec, and to keep them."""
    model = state.fleet.models.get(fact.model)
    if model is None or model.deleted:
        return pending.rejected(404, f"there is no model {fact.model}")
    spec = model.spec
    if not isinstance(spec.source, FetchedSource):
        where = told_source(spec.source)
        return pending.rejected(409, f"nothing is fetched of {model.name}: {where} lies on workers' own disks already")
    if not spec.files:
        return pending.rejected(409, f"{model.name} names no files: deploy it again")
    wanted = _wanted(spec, model.name)
    try:
        if fact.nodes:
            nodes = _named(state, fact.nodes)
            for node in nodes:
                if (why := _cannot(state, node, wanted)) is not None:
                    raise _Refused(409, f"{node.name} can't fetch {model.name}: it {why}")
        else:
            nodes = _chosen(state, wanted, fact.count)
    except _Refused as refused:
        return pending.rejected(refused.status, str(refused))
    return _want(pending, nodes, wanted, f"{_names(nodes)} are to have the files of {model.name}")


def pin_files(state: RegistryState, pending: PendingRequest, fact: FilesPinRequested) -> Decision:
    """Nodes are to keep files that they have."""
    try:
        if fact.nodes:
            nodes = _named(state, fact.nodes)
            if lacking := [node.name for node in nodes if fact.files not in node.fetched]:
                raise _Refused(409, f"{lacking[0]} lacks the files {fact.files}: fetch them there")
        else:
            nodes = [node for node in _living(state) if node.holds(fact.files)]  # a bare word earns nobody a secret
            _some(nodes, fact.files)
        found = spec_with(state.fleet, fact.files, FilesNamed())
        if found is None:
            raise _Refused(409, f"no model that is deployed has the files {fact.files}: deploy it before")
        if full := [node.name for node in nodes if _full(node, fact.files)]:
            raise _Refused(409, f"{full[0]} keeps the files of {MOST_WANTED} models already: unpin others before")
    except _Refused as refused:
        return pending.rejected(refused.status, str(refused))
    model, spec = found
    return _want(pending, nodes, _wanted(spec, model.name), f"{_names(nodes)} are to keep the files of {model.name}")


def unpin_files(state: RegistryState, pending: PendingRequest, fact: FilesUnpinRequested) -> Decision:
    """Nodes keep files no longer than they need them."""
    return _retire(state, pending, fact, remove=False)


def remove_files(state: RegistryState, pending: PendingRequest, fact: FilesRemovalRequested) -> Decision:
    """Nodes are to remove files, each once nothing there uses them."""
    return _retire(state, pending, fact, remove=True)


def _retire(
    state: RegistryState,
    pending: PendingRequest,
    fact: FilesUnpinRequested | FilesRemovalRequested,
    *,
    remove: bool,
) -> Decision:
    files = fact.files
    try:
        if fact.nodes:
            nodes = _named(state, fact.nodes)
            if lacking := [node.name for node in nodes if not _has(node, files)]:
                raise _Refused(404, f"{lacking[0]} has no files {files}, and is to have none")
        else:
            nodes = [node for node in _living(state) if _has(node, files)]
            _some(nodes, files)
    except _Refused as refused:
        return pending.rejected(refused.status, str(refused))
    retired = FilesRetired(files=files, remove=remove)
    moved = [node for node in nodes if _retires(node, files, remove=remove)]
    named = FilesNamed()
    used = [node for node in nodes if remove and any(replicas_using(state.fleet, node.id, files, named))]
    does = "are to remove" if remove else "need not keep"
    changes = [_change(pending, node, retired) for node in moved]
    why = f"{_names(nodes)} {does} the files {files}"
    result = {"files": files, "nodes": _names(nodes), **({"in_use": _names(used)} if remove else {})}
    return pending.fulfilled(why, *changes, **result)


def _has(node: NodeView, files: str) -> bool:
    return files in node.fetched or files in node.file_wishes.wanted


def _retires(node: NodeView, files: str, *, remove: bool) -> bool:
    """Whether the log has to say it: not what it says already."""
    wishes = node.file_wishes
    if files in wishes.wanted:
        return True
    return remove and not wishes.retired.get(files, False)


def _chosen(state: RegistryState, wanted: FilesWanted, count: int) -> list[NodeView]:
    """So many nodes that lack the files and can fetch them, those with most room on their disks first."""
    if count < 1:
        raise _Refused(400, "no nodes are named and no number of nodes is given: give one of both")
    lacking = [node for node in _living(state) if node.takes_replicas and not _has(node, wanted.files)]
    fitting = [node for node in lacking if _cannot(state, node, wanted) is None]
    if len(fitting) < count:
        short = f"; {len(lacking) - len(fitting)} more have too little room" if len(lacking) > len(fitting) else ""
        raise _Refused(
            409,
            f"{wanted.model_name} can be fetched on {len(fitting)} more nodes and not on {count}: they must be "
            f"healthy, approved, open to replicas, and without its files{short}",
        )
    assigned = state.fleet.assigned
    return sorted(fitting, key=lambda node: (-(room_left(node, assigned(node.id), wanted.files) or 0), node.id))[:count]


def _cannot(state: RegistryState, node: NodeView, wanted: FilesWanted) -> str | None:
    """Why a node can't have the files; what is not known of its disk passes."""
    if not node.approved or node.rejected is not None or node.cut_off is not None:
        return f"is {node.state}"
    if node.kind != "worker":
        return f"runs no models: it is {node.kind}"
    if _full(node, wanted.files):
        return f"is to have the files of {MOST_WANTED} models already: unpin others before"
    assigned = state.fleet.assigned(node.id)
    left, needed = room_left(node, assigned, wanted.files), room_for(wanted.bytes)
    if wanted.files in node.fetched or left is None or left >= needed:
        return None
    room = told_room(node, assigned, wanted.files)
    return f"needs {gib(needed)} of disk free for {gib(wanted.bytes)} of files and has {room}"


def _full(node: NodeView, files: str) -> bool:
    wanted = node.file_wishes.wanted
    return files not in wanted and len(wanted) >= MOST_WANTED


def _wanted(spec: ModelSpec, model_name: str) -> FilesWanted:
    """No longer than a spec that was accepted, and so short enough for a commit."""
    assert isinstance(spec.source, FetchedSource)
    size = sum(file.size for file in spec.files)
    return FilesWanted(
        files=files_digest(spec), source=spec.source, listed=spec.files, bytes=size, model_name=model_name
    )


def _want(pending: PendingRequest, nodes: list[NodeView], wanted: FilesWanted, why: str) -> Decision:
    """Those nodes are to have it; whoever failed to fetch it is asked anew."""
    changes = [_change(pending, node, wanted) for node in nodes if not _is_so(node, wanted)]
    result = {"files": wanted.files, "model_name": wanted.model_name, "nodes": _names(nodes)}
    return pending.fulfilled(why, *changes, **result)


def _is_so(node: NodeView, wanted: FilesWanted) -> bool:
    """Whether the node has been told; with another secret it is told anew."""
    wishes = node.file_wishes
    told = wishes.wanted.get(wanted.files)
    return told is not None and told.source == wanted.source and wanted.files not in wishes.faults


def _change(pending: PendingRequest, node: NodeView, fact: FilesWanted | FilesRetired) -> Commit:
    aggregate = node_of(node.id)
    return Commit(aggregate, (fact,), Guard(aggregate, node.sequence), pending.cause)


def _living(state: RegistryState) -> Iterable[NodeView]:
    return (node for node in state.fleet.nodes.values() if not node.removed)


def _named(state: RegistryState, ids: tuple[NodeId, ...]) -> list[NodeView]:
    """Raises _Refused."""
    found: dict[NodeId, NodeView] = {}
    for id in ids:
        node = state.fleet.nodes.get(id)
        if node is None or node.removed:
            raise _Refused(404, f"there is no node {id}")
        found[id] = node
    return [*found.values()]


def _some(nodes: list[NodeView], files: str) -> None:
    """Raises _Refused where there is no node, or too many for one batch."""
    if not nodes:
        raise _Refused(404, f"no node has the files {files}")
    if len(nodes) > MOST_FILE_NODES:
        raise _Refused(409, f"{len(nodes)} nodes have the files {files}: name at most {MOST_FILE_NODES} of them")


def _names(nodes: Iterable[NodeView]) -> str:
    return ", ".join(sorted(node.name for node in nodes))
