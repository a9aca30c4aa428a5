"""What this node's part of the log says: who is to run here, what ran last, which questions are open."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from weft_contracts.backend_wishes import (
    NO_WISHES,
    BackendWishes,
    after_fault,
    after_report,
    after_retired,
    after_use,
    after_wanted,
)
from weft_contracts.commit import Cause, Recorded
from weft_contracts.engines import FileFormat
from weft_contracts.facts import inspection, machine, node, run
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.values import InstalledBackend
from weft_contracts.file_wishes import (
    NO_FILE_WISHES,
    FileWishes,
    after_files_failed,
    after_files_moved,
    after_files_retired,
    after_files_wanted,
)
from weft_contracts.ids import Incarnation, InspectionId, ReplicaId
from weft_contracts.states import Phase

K = TypeVar("K")
V = TypeVar("V")
OPEN: frozenset[Phase] = frozenset(("installing", "fetching", "loading", "ready", "degraded", "stopping"))
"""A run that the log believes to have a process."""
PREPARES: frozenset[Phase] = frozenset(("installing", "fetching"))
"""Of these, one that hasn't begun."""


@dataclass(frozen=True, slots=True)
class Retirement:
    """A replica is to end here."""

    deadline_s: float
    cause: Cause
    sequence: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """A replica that was given to this node."""

    fact: node.Assigned
    cause: Cause
    """Of what follows from it."""
    retirement: Retirement | None = None

    @property
    def replica(self) -> ReplicaId:
        return self.fact.replica

    @property
    def epoch(self) -> int:
        return self.fact.epoch

    @property
    def is_rank(self) -> bool:
        """Whether it is one of several ranks, which start together or not at all."""
        return len(self.fact.members) > 1


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The last that the log heard of a replica's run here."""

    epoch: int
    phase: Phase
    incarnation: Incarnation | None
    cause: Cause
    """Of what follows from its last event."""
    exceeded: int = 0
    """Bytes that its process was last said to hold beyond its claim; 0: it was not."""

    @property
    def open(self) -> bool:
        return self.phase in OPEN


@dataclass(frozen=True, slots=True)
class Question:
    """An inspection that waits for its answer."""

    source: str
    engine: str
    cause: Cause
    formats: tuple[FileFormat, ...] = ()
    """That the engine loads, where this node may not know it yet."""


@dataclass(frozen=True, slots=True)
class OwnPart:
    """The folded part. Assignments and runs that have ended are gone from it."""

    assignments: Mapping[ReplicaId, Assignment] = field(default_factory=dict[ReplicaId, Assignment])
    runs: Mapping[ReplicaId, RunRecord] = field(default_factory=dict[ReplicaId, RunRecord])
    questions: Mapping[InspectionId, Question] = field(default_factory=dict[InspectionId, Question])
    reported: machine.Reported | None = None
    pressure: Mapping[int, int] = field(default_factory=dict[int, int])
    """Bytes that others use of a device's memory, by device, as the log was told."""
    wishes: BackendWishes = NO_WISHES
    """What is to be here of engines ahead of need, and what no more."""
    files: Mapping[str, int] = field(default_factory=dict[str, int])
    """Bytes of the fetched models that lie here, by `files_digest`, as the log was told."""
    file_wishes: FileWishes = NO_FILE_WISHES
    """Which models' files are to be here whether a replica needs them or not, and which no more."""
    approved: Cause | None = None
    """Of what follows from this node's joining or approval, whichever came last."""
    removed: bool = False
    drain: Literal["admin", "worker"] | None = None
    """Whose drain stands; None: it doesn't drain."""
    drained: bool = False


def evolve(part: OwnPart, commit: Recorded) -> OwnPart:
    """The part after one more commit. Facts that concern others, or nobody here, change nothing."""
    for fact in commit.facts:
        part = _one(part, commit, fact)
    return part


def _one(part: OwnPart, commit: Recorded, fact: Fact) -> OwnPart:
    match fact:
        case node.BackendWanted():
            return replace(part, wishes=after_wanted(part.wishes, fact, _environments(part)))
        case node.BackendRetired():
            return replace(part, wishes=after_retired(part.wishes, fact))
        case machine.InstallFailed():
            return replace(part, wishes=after_fault(part.wishes, fact))
        case node.FilesWanted():
            return replace(part, file_wishes=after_files_wanted(part.file_wishes, fact))
        case node.FilesRetired():
            return replace(part, file_wishes=after_files_retired(part.file_wishes, fact, part.files))
        case machine.FilesFailed():
            return replace(part, file_wishes=after_files_failed(part.file_wishes, fact))
        case node.Assigned():
            if fact.backend is not None:
                part = replace(part, wishes=after_use(part.wishes, fact.backend, _environments(part)))
            assigned = {**part.assignments, fact.replica: Assignment(fact, commit.cause)}
            return replace(part, assignments=assigned)
        case node.Unassigned():
            return _unassigned(part, commit, fact)
        case node.Joined() | node.Rejoined() | node.Approved():
            return replace(part, approved=commit.cause, removed=False)
        case node.Removed():
            return replace(part, removed=True)
        case node.Draining():
            return replace(part, drain=fact.why, drained=False)
        case node.Drained():
            return replace(part, drained=True)
        case node.Resumed():
            return replace(part, drain=None, drained=False)
        case machine.Reported():
            devices = {device.index for device in fact.hardware.devices}
            pressure = {index: used for index, used in part.pressure.items() if index in devices}
            wishes = after_report(part.wishes, fact.environments)
            return replace(part, reported=fact, pressure=pressure, wishes=wishes)
        case machine.PressureChanged():
            return replace(part, pressure={**part.pressure, fact.device: fact.bytes})
        case machine.FilesCame():
            wishes = after_files_moved(part.file_wishes, fact.files, here=True)
            return replace(part, files={**part.files, fact.files: fact.bytes}, file_wishes=wishes)
        case machine.FilesGone():
            wishes = after_files_moved(part.file_wishes, fact.files, here=False)
            return replace(part, files=_without(part.files, fact.files), file_wishes=wishes)
        case machine.FileFound() | machine.FileMissing():
            return replace(part, questions=_without(part.questions, fact.inspection))
        case inspection.Requested():
            id = InspectionId(commit.aggregate.key.rpartition(".")[2])
            question = Question(fact.source, fact.engine, commit.cause, fact.formats)
            return replace(part, questions={**part.questions, id: question})
        case _ if commit.aggregate.kind == "run":
            return _ran(part, commit, fact)
        case _:
            return part


def _environments(part: OwnPart) -> tuple[InstalledBackend, ...]:
    return part.reported.environments if part.reported is not None else ()


def _unassigned(part: OwnPart, commit: Recorded, fact: node.Unassigned) -> OwnPart:
    assignment = part.assignments.get(fact.replica)
    if assignment is None:
        return part
    retirement = Retirement(fact.deadline_s, commit.cause, commit.sequence)
    retired = replace(assignment, retirement=retirement)
    return replace(part, assignments={**part.assignments, fact.replica: retired})


def _ran(part: OwnPart, commit: Recorded, fact: Fact) -> OwnPart:
    replica = ReplicaId(commit.aggregate.key.rpartition(".")[2])
    before = part.runs.get(replica)
    match fact:
        case run.Exceeded():
            if before is None or before.incarnation != fact.incarnation:
                return part
            told = replace(before, exceeded=fact.used, cause=commit.cause)
            return replace(part, runs={**part.runs, replica: told})
        case run.Loading() | run.Ready() | run.Degraded() | run.Stopping():
            incarnation: Incarnation | None = fact.incarnation
        case run.Installing() | run.Fetching():
            incarnation = None
        case run.Stopped() | run.Failed():
            incarnation = before.incarnation if before is not None and before.epoch == fact.epoch else None
        case _:
            return part
    same = before is not None and before.incarnation == incarnation
    record = RunRecord(fact.epoch, fact.type, incarnation, commit.cause, before.exceeded if before and same else 0)
    part = replace(part, runs={**part.runs, replica: record})
    assignment = part.assignments.get(replica)
    if assignment is None:
        return part if record.open else replace(part, runs=_without(part.runs, replica))
    if isinstance(fact, run.Stopped) and assignment.epoch == fact.epoch and assignment.retirement is not None:
        return replace(
            part,
            assignments=_without(part.assignments, replica),
            runs=_without(part.runs, replica),
        )
    return part


def _without(mapping: Mapping[K, V], key: K) -> Mapping[K, V]:
    return {k: v for k, v in mapping.items() if k != key}
