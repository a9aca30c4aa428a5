"""Which nodes are asked to look at a source that workers fetch, and what of their answers becomes part of the spec.

What lies at a hub is the same from wherever it is asked: a few nodes do, not all. Two first; as many again for each
that can't tell, and for each span of silence; eight in all.
"""

import heapq
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from zlib import crc32

from weft_contracts.digest import files_digest
from weft_contracts.facts.machine import FileFound, FileMissing
from weft_contracts.facts.source import HfSource, HttpsSource, RemoteSource, S3Source, UploadSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import NodeId
from weft_contracts.source_keys import source_key
from weft_fleet import NodeView
from weft_requests import PendingRequest

from weft_reconciler.domain.inspections import inspection_key, keys_beside
from weft_reconciler.domain.state import State

ASKED_FIRST: Final = 2
MOST_ASKED: Final = 8
PATIENCE_S: Final = 4.0
"""After so long a silence others are asked, too."""
NOTHING_TOLD: Final[Mapping[str, str]] = MappingProxyType({})
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")


def is_fetched(spec: ModelSpec) -> bool:
    """Whether workers fetch its files from elsewhere."""
    return isinstance(spec.source, HfSource | HttpsSource | S3Source)


def is_sent(spec: ModelSpec) -> bool:
    """Whether somebody sends its files to the mesh, and has told what they are."""
    return isinstance(spec.source, UploadSource)


def readers(
    state: State, pending: PendingRequest, spec: ModelSpec, able: Mapping[NodeId, NodeView], waited_s: float
) -> Mapping[NodeId, NodeView]:
    """Those of the nodes that can load a source that are to look at it now, for a request that waited so long.

    Drawn by the request's and the nodes' ids, so that every decider draws alike: first those that the spec's selector
    lets have a replica, and none that lacks a LoRA adapter or the draft model, unless all do. Cost: a checksum a node.
    """
    key, since = inspection_key(spec), pending.sequence
    assert key is not None
    lacking = {
        node
        for beside in keys_beside(spec, state.fleet.engines)
        for node in able
        if (last := state.inspections.last(beside, node, since)) is not None and isinstance(last.answer, FileMissing)
    }
    fit = [node for node in able if node not in lacking] or list(able)
    drawn = heapq.nsmallest(
        MOST_ASKED, fit, key=lambda id: (not _selected(able[id], spec), crc32(f"{pending.id} {id}".encode()), id)
    )
    looks = [state.inspections.last(key, id, since) for id in drawn]
    unable = sum(each is not None and each.answer is not None and not is_usable(spec, each.answer) for each in looks)
    count = ASKED_FIRST * (1 + unable + int(max(waited_s, 0.0) / PATIENCE_S))
    return {id: able[id] for id in drawn[:count]}


def is_usable(spec: ModelSpec, answer: FileFound | FileMissing | None) -> bool:
    """Whether a node's answer can become part of a spec."""
    return isinstance(answer, FileFound) and fault_of_answer(spec, answer) is None


def fault_of_answer(spec: ModelSpec, found: FileFound) -> str | None:
    """Why what a node says of a source is not taken; None where it is, and for sources that nobody fetches."""
    source = spec.source
    if not isinstance(source, HfSource | HttpsSource | S3Source):
        return None
    if not found.files:
        return "it told no files"
    if len({file.name for file in found.files}) < len(found.files):
        return "it told one file twice"
    pinned = found.pinned
    if isinstance(source, HfSource):
        if not isinstance(pinned, HfSource) or not _COMMIT.fullmatch(pinned.revision):
            return "it told no commit"
        if _COMMIT.fullmatch(source.revision) and pinned.revision != source.revision:
            return "it told another commit"
    if pinned is not None and _without_revision(pinned) != _without_revision(source):
        return f"it told of {source_key(pinned)}"
    return None


def told_of_sent(spec: ModelSpec) -> Mapping[str, str]:
    """What whoever sends a model's files is told: how many and how large, and by which name they are sent."""
    bytes = sum(file.size for file in spec.files)
    return {"files": str(len(spec.files)), "bytes": str(bytes), "upload": files_digest(spec)}


def as_found(spec: ModelSpec, found: FileFound) -> ModelSpec:
    """The spec at the commit that a node found, with the files that it told."""
    return spec.model_copy(update={"source": found.pinned or spec.source, "files": found.files})


def told_of(found: FileFound) -> Mapping[str, str]:
    """What whoever deploys is told of a source."""
    told = {
        "files": str(len(found.files)),
        "bytes": str(sum(file.size for file in found.files)),
        "licence": found.licence,
        "gated": "yes" if found.gated else "",
        "source": source_key(found.pinned) if found.pinned is not None else "",
    }
    return {name: text for name, text in told.items() if text}


def _without_revision(source: RemoteSource) -> RemoteSource:
    return source.model_copy(update={"revision": "", "file": ""}) if isinstance(source, HfSource) else source


def _selected(node: NodeView, spec: ModelSpec) -> bool:
    """Whether it bears the labels that a replica wants: see `filters.labels`."""
    return all(
        (key[1:] not in node.labels) if key.startswith("!") else node.labels.get(key) == value
        for key, value in spec.selector.items()
    )
