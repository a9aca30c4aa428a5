"""Replicas that wait for a place, by revision: one look at a revision's ranking answers for all of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from weft_contracts.commit import Recorded
from weft_contracts.facts.model import Scaled
from weft_contracts.ids import ModelId, ReplicaId
from weft_fleet import Fleet

Revision = tuple[ModelId, int]


@dataclass(slots=True)
class Group:
    """The waiting replicas of one revision, oldest first."""

    replicas: dict[ReplicaId, None] = field(default_factory=dict[ReplicaId, None])
    due: bool = True
    """Someone must look, whether or not a node changed."""
    changes: int = -1
    """The ranking's count of changes at the last look."""
    look_at: float = 0.0
    """When to look again at the latest, in seconds since the epoch."""
    weighed_at: float = 0.0
    """When what would make room but for a while was searched for last."""
    unsearched: bool = False
    """That is still to be asked for some of them."""
    evict_at: float = 0.0
    """When to look again at what might end for them."""


@dataclass(slots=True)
class Waiting:
    """Follows the fleet's `waiting`, commit by commit."""

    _groups: dict[Revision, Group] = field(default_factory=dict[Revision, Group])
    _revision_of: dict[ReplicaId, Revision] = field(default_factory=dict[ReplicaId, Revision])
    _revisions: dict[ModelId, dict[int, None]] = field(default_factory=dict[ModelId, dict[int, None]])
    """The waiting revisions of each model: a model's commit looks at no other's."""

    def __len__(self) -> int:
        return len(self._revision_of)

    @property
    def groups(self) -> int:
        """How many revisions wait."""
        return len(self._groups)

    def __iter__(self) -> Iterator[tuple[Revision, Group]]:
        """The group that has waited longest comes first."""
        return iter(tuple(self._groups.items()))

    def look_anew(self) -> None:
        """Forget what was looked at before, and when."""
        for id, group in self._groups.items():
            self._groups[id] = Group(group.replicas)

    def follow(self, fleet: Fleet, recorded: Recorded) -> None:
        """Take up what a commit, already folded into the fleet, changed."""
        match recorded.aggregate.kind:
            case "replica":
                self._file(fleet, ReplicaId(recorded.aggregate.key))
            case "model":
                for fact in recorded.facts:
                    if isinstance(fact, Scaled):
                        for id in (*fact.add, *fact.retire):
                            self._file(fleet, id)
                self._wake(fleet, ModelId(recorded.aggregate.key))
            case _:
                pass

    def _file(self, fleet: Fleet, id: ReplicaId) -> None:
        if id in fleet.waiting and id not in self._revision_of:
            view = fleet.replicas[id]
            key = (view.model, view.revision)
            self._revision_of[id] = key
            self._groups.setdefault(key, Group()).replicas[id] = None
            self._revisions.setdefault(view.model, {})[view.revision] = None
        elif id not in fleet.waiting and id in self._revision_of:
            key = self._revision_of.pop(id)
            group = self._groups[key]
            del group.replicas[id]
            if not group.replicas:
                del self._groups[key]
                revisions = self._revisions[key[0]]
                del revisions[key[1]]
                if not revisions:
                    del self._revisions[key[0]]

    def _wake(self, fleet: Fleet, model: ModelId) -> None:
        """A model's commit may add replicas, let them go, or hold them: someone must look."""
        for revision in tuple(self._revisions.get(model, ())):
            group = self._groups[model, revision]
            group.due = True
            for id in tuple(group.replicas):
                self._file(fleet, id)
