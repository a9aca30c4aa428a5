"""The fleet's nodes as an index, kept in step with the log: what every ranking of a model that nobody ranked before
would otherwise ask of each node.

Following costs what was touched, not the fleet: a node's class is read again where its machine or its state told
something new, its free memory where its claims changed, and its places in the orders that were asked for
(`crowd_members.py`) are searched where that is another.
"""

from collections import defaultdict
from collections.abc import Hashable
from typing import Any
from weakref import WeakValueDictionary

from weft_contracts.facts.machine import FileFound, FileMissing
from weft_contracts.ids import ModelId, NodeId
from weft_fleet import Fleet, NodeAssignments, NodeView

from weft_placement.crowd_members import CrowdMembers
from weft_placement.node_class import class_of
from weft_placement.node_record import Crowd, NodeClass, NodeRecord, record_of


class NodeIndex:
    """All nodes of one fleet, by what they have in common."""

    def __init__(self) -> None:
        self.position = -1
        self.changes = 0
        """How many nodes were taken up, again and again."""
        self.records: dict[NodeId, NodeRecord] = {}
        self.crowds: defaultdict[Crowd, CrowdMembers] = defaultdict(CrowdMembers)
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
        before, record = self._seen.pop(id, None), self.records.get(id)
        if view is None or view.removed:
            if record is not None:
                self._leave(record)
                del self.records[id]
            if before is not None:
                self._forget(id, before)
            return
        assigned = fleet.assigned(id)
        self._follow_names(id, before, view, assigned)
        same = before is not None and record is not None and _same_kind(before[0], view)
        kind = record.crowd.kind if same and record is not None else self._kind_of(view)
        self._seen[id] = (view, assigned)
        made = record_of(view, assigned, kind)
        if record is not None and record.crowd != made.crowd:
            self._leave(record)
        self.records[id] = made
        self.crowds[made.crowd].put(made)

    def _leave(self, record: NodeRecord) -> None:
        members = self.crowds[record.crowd]
        members.drop(record.id)
        if not members.records:
            del self.crowds[record.crowd]

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
