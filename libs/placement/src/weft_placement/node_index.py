"""The fleet's nodes as an index, kept in step with the log: what every ranking of a model that nobody ranked before
would otherwise ask of each node.

Following costs what was touched, not the fleet: a node's class is read again where its machine or its state told
something new, its free memory where its claims changed.
"""

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from weft_contracts.facts.machine import FileFound, FileMissing
from weft_contracts.ids import ModelId, NodeId
from weft_fleet import Fleet, NodeAssignments, NodeView

from weft_placement.device_memory import PROCESSOR, free_memory
from weft_placement.filters.disk import promised
from weft_placement.node_class import class_of
from weft_placement.zones import ZONE


class NodeClass:
    """Stands for all that `class_of` tells of a node: the same object for the same."""


class Crowd(NamedTuple):
    """Nodes that little but their free memory tells apart: the class, the zone, and how many replicas there are."""

    kind: NodeClass
    zone: str
    replicas: int


@dataclass(slots=True)
class NodeRecord:
    """One node's own figures."""

    id: NodeId
    crowd: Crowd
    free: tuple[int, ...]
    """Of each accelerator, the least first; where they are of one vendor."""
    most: int
    """Of them, the largest; -1: it has none."""
    host: int
    """Free of the processor's memory; -1: it tells of none."""
    host_total: int
    budgeted: tuple[bool, bool]
    """Whether a budget is what leaves no more: of an accelerator, of the processor."""
    disk: int | None
    """Bytes of the disk that are free and not promised to any files; None: not known."""
    install_disk: int | None
    """Bytes that are free of the disk that takes engines; None: not known."""


class NodeIndex:
    """All nodes of one fleet, by what they have in common."""

    def __init__(self) -> None:
        self.position = -1
        self.changes = 0
        """How many nodes were taken up, again and again."""
        self.records: dict[NodeId, NodeRecord] = {}
        self.crowds: defaultdict[Crowd, dict[NodeId, NodeRecord]] = defaultdict(dict)
        self.holders: defaultdict[ModelId, dict[NodeId, None]] = defaultdict(dict)
        """Nodes with an assignment of a model."""
        self.fetched: defaultdict[str, dict[NodeId, None]] = defaultdict(dict)
        """Nodes that have files, by what names them."""
        self.told: defaultdict[str, dict[NodeId, Hashable]] = defaultdict(dict)
        """What nodes answered about a source, by their key for it; equal answers are equal."""
        self._seen: dict[NodeId, tuple[NodeView, NodeAssignments]] = {}
        self._kinds = WeakValueDictionary[Hashable, NodeClass]()

    def follow(self, fleet: Fleet) -> None:
        """Take up what the log said since the last call."""
        if self.position < 0 or fleet.position < self.position:
            self.__init__()
            for id in fleet.nodes:
                self._take(fleet, id)
        elif fleet.position > self.position:
            for id, position in reversed(fleet.touched.items()):
                if position <= self.position:
                    break
                self._take(fleet, id)
        self.position = fleet.position

    def _take(self, fleet: Fleet, id: NodeId) -> None:
        self.changes += 1
        view = fleet.nodes.get(id)
        before, record = self._seen.pop(id, None), self.records.pop(id, None)
        if record is not None:
            crowd = self.crowds[record.crowd]
            del crowd[id]
            if not crowd:
                del self.crowds[record.crowd]
        if view is None or view.removed:
            if before is not None:
                self._forget(id, before)
            return
        assigned = fleet.assigned(id)
        self._follow_names(id, before, view, assigned)
        same = before is not None and record is not None and _same_kind(before[0], view)
        kind = record.crowd.kind if same and record is not None else self._kind_of(view)
        self._seen[id] = (view, assigned)
        made = _record(view, assigned, kind)
        self.records[id] = made
        self.crowds[made.crowd][id] = made

    def _kind_of(self, view: NodeView) -> NodeClass:
        key = class_of(view)
        found = self._kinds.get(key)
        if found is None:
            found = self._kinds[key] = NodeClass()
        return found

    def _forget(self, id: NodeId, before: tuple[NodeView, NodeAssignments]) -> None:
        view, assigned = before
        for each in assigned.assignments.values():
            _drop(self.holders, each.model, id)
        for files in view.fetched:
            _drop(self.fetched, files, id)
        for key in view.files:
            _drop(self.told, key, id)

    def _follow_names(
        self, id: NodeId, before: tuple[NodeView, NodeAssignments] | None, view: NodeView, assigned: NodeAssignments
    ) -> None:
        """The lists of who holds, has and told what."""
        was, held = before if before is not None else (None, None)
        if held is None or held.assignments is not assigned.assignments:
            models = {each.model for each in assigned.assignments.values()}
            for each in held.assignments.values() if held is not None else ():
                if each.model not in models:
                    _drop(self.holders, each.model, id)
            for model in models:
                self.holders[model][id] = None
        if was is None or was.fetched is not view.fetched:
            for files in was.fetched if was is not None else ():
                if files not in view.fetched:
                    _drop(self.fetched, files, id)
            for files in view.fetched:
                self.fetched[files][id] = None
        if was is None or was.files is not view.files:
            for key in was.files if was is not None else ():
                if key not in view.files:
                    _drop(self.told, key, id)
            for key, answer in view.files.items():
                if was is None or was.files.get(key) is not answer:
                    self.told[key][id] = _answer(answer)


def _drop(lists: "defaultdict[Any, dict[NodeId, Any]]", key: object, id: NodeId) -> None:
    entries = lists.get(key)
    if entries is not None:
        entries.pop(id, None)
        if not entries:
            del lists[key]


def _answer(answer: FileFound | FileMissing) -> Hashable:
    """The answer without whose it is."""
    return answer.weights.model_dump_json() if isinstance(answer, FileFound) else ("", answer.reason)


_KIND = (
    "labels", "kind", "approved", "presence", "cut_off", "draining", "cordoned", "removed", "reads", "hardware",
    "backends", "builtins", "installs", "environments", "caps",
)  # fmt: skip


def _same_kind(one: NodeView, other: NodeView) -> bool:
    """Whether nothing was told that a class is made of: a fold keeps what it doesn't change."""
    before, after = one.__dict__, other.__dict__
    return all(before[name] is after[name] for name in _KIND)


def _record(view: NodeView, assigned: NodeAssignments, kind: NodeClass) -> NodeRecord:
    free: list[int] = []
    host = host_total = -1
    on_device = on_host = False
    for memory in free_memory(view, assigned):
        if memory.vendor != "cpu":
            free.append(memory.free)
            on_device = on_device or memory.budgeted
        elif memory.device_index == PROCESSOR:
            host, host_total, on_host = memory.free, memory.total, memory.budgeted
    free.sort()
    hardware, installs = view.hardware, view.installs
    disk = hardware.disk_free if hardware is not None else None
    return NodeRecord(
        id=view.id,
        crowd=Crowd(kind, view.labels.get(ZONE, ""), assigned.replicas),
        free=tuple(free),
        most=free[-1] if free else -1,
        host=host,
        host_total=host_total,
        budgeted=(on_device, on_host),
        disk=None if disk is None else disk - promised(view, assigned, ""),
        install_disk=None if installs is None else installs.disk_free,
    )
