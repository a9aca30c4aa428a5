"""What replicas hold on one node: the assignments that stand there and the memory they claim."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from weft_contracts.commit import Cause
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.run import RunFact
from weft_contracts.facts.values import DeviceClaim
from weft_contracts.ids import ModelId, NodeId, ReplicaId

from weft_fleet.changed import changed

_K = TypeVar("_K")


@dataclass(frozen=True)
class Assignment:
    """One replica's part on one node."""

    replica: ReplicaId
    model: ModelId
    revision: int
    digest: str
    epoch: int
    rank: int
    devices: tuple[DeviceClaim, ...]
    sequence: int
    """The sequence of the commit that assigned it; 0 while it is only planned."""
    cause: Cause
    """What follows from the assignment bears this cause."""
    retiring: bool = False
    """It was unassigned."""
    recipe: str = ""
    """Digest of what its engine is to run in; empty: what lies there."""
    ended: bool = False
    """Its run said `stopped` or `failed` and has not started since."""
    files: str = ""
    """What names the files that the node fetches for it (`digest.files_digest`); empty: none, or it was ready, so that
    they lie there, whether its worker tells of files or not."""
    file_bytes: int = 0
    """All of them."""
    anti_affinity: str = ""
    """Replicas that name the same share no node; empty: it names none."""

    @property
    def holds(self) -> bool:
        """Whether its claim counts: until it is both unassigned and ended."""
        return not (self.retiring and self.ended)

    @property
    def needs(self) -> Mapping[str, int]:
        """Bytes of the files that it is to have here, as long as it is to run; by what names them."""
        return {self.files: self.file_bytes} if self.files and not self.retiring else {}


@dataclass(frozen=True)
class NodeAssignments:
    """All assignments of one node, with what they add up to."""

    assignments: Mapping[ReplicaId, Assignment] = field(default_factory=dict[ReplicaId, Assignment])
    claims: Mapping[int, int] = field(default_factory=dict[int, int])
    """Claimed bytes by device; a device without a claim is absent."""
    models: Mapping[ModelId, int] = field(default_factory=dict[ModelId, int])
    """How many replicas of each model hold a claim here."""
    files: Mapping[str, int] = field(default_factory=dict[str, int])
    """Bytes of the files that these are to have here, whether they lie here yet or not; by what names them."""

    @property
    def replicas(self) -> int:
        """How many replicas hold a claim here."""
        return sum(self.models.values())

    def put(self, assignment: Assignment) -> "NodeAssignments":
        """These assignments with this one added, in the place of the same replica's former one."""
        before = self.assignments.get(assignment.replica)
        assignments = {**self.assignments, assignment.replica: assignment}
        files = self._files(before, assignment, assignments)
        if before is not None and before.holds == assignment.holds and before.devices == assignment.devices:
            return changed(self, assignments=assignments, files=files)
        claims, models = dict(self.claims), dict(self.models)
        if before is not None and before.holds:
            _count(before, claims, models, -1)
        if assignment.holds:
            _count(assignment, claims, models, 1)
        return NodeAssignments(assignments, claims, models, files)

    def without(self, replica: ReplicaId) -> "NodeAssignments":
        """These assignments as if the replica had never been assigned here."""
        before = self.assignments.get(replica)
        if before is None:
            return self
        claims, models = dict(self.claims), dict(self.models)
        if before.holds:
            _count(before, claims, models, -1)
        assignments = {key: value for key, value in self.assignments.items() if key != replica}
        return NodeAssignments(assignments, claims, models, self._files(before, None, assignments))

    def _files(
        self, before: Assignment | None, after: Assignment | None, all: Mapping[ReplicaId, Assignment]
    ) -> Mapping[str, int]:
        """Cost: a look at all assignments here where one of other files came or went."""
        was, now = (each.needs if each is not None else None for each in (before, after))
        if (was or None) == (now or None):
            return self.files
        return {files: size for each in all.values() for files, size in each.needs.items()}


def _count(assignment: Assignment, claims: dict[int, int], models: dict[ModelId, int], sign: int) -> None:
    for device in assignment.devices:
        _add(claims, device.index, sign * device.bytes)
    _add(models, assignment.model, sign)


def _add(counts: dict[_K, int], key: _K, amount: int) -> None:
    total = counts.get(key, 0) + amount
    if total:
        counts[key] = total
    else:
        counts.pop(key, None)


def assignment_of(node: NodeId, fact: Assigned, sequence: int, cause: Cause, files: tuple[str, int]) -> Assignment:
    """What an `assigned` on this node means here; `files` are its revision's, as `ModelView.fetched` has them. Raises
    KeyError if it has no member for the node."""
    member = fact.member(node)
    return Assignment(
        replica=fact.replica,
        model=fact.model,
        revision=fact.revision,
        digest=fact.digest,
        epoch=fact.epoch,
        rank=member.rank,
        devices=member.devices,
        sequence=sequence,
        cause=cause,
        recipe=fact.backend.digest if fact.backend is not None else "",
        files=files[0],
        file_bytes=files[1],
        anti_affinity=fact.spec.anti_affinity,
    )


def after_run(assignment: Assignment, fact: RunFact) -> Assignment:
    """The assignment after a fact of its run: a process that starts late claims its memory again."""
    ended = fact.type in ("stopped", "failed")
    if fact.type == "ready" and assignment.files:
        return changed(assignment, ended=ended, files="", file_bytes=0)
    return assignment if ended == assignment.ended else changed(assignment, ended=ended)
