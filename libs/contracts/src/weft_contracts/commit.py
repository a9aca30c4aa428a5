"""A commit: one message of the log, with one or more facts of one aggregate."""

from dataclasses import dataclass

from weft_contracts.facts.fact import Fact
from weft_contracts.ids import CorrelationId, EventId
from weft_contracts.subjects import Aggregate

MAX_COMMIT_BYTES = 64 * 1024
"""A larger one is refused before it is sent; larger things are blobs."""


@dataclass(frozen=True, slots=True)
class Guard:
    """The append holds only if `aggregate` has not moved past `sequence` (0: must not exist)."""

    aggregate: Aggregate
    sequence: int


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a commit is made: the event that asked for it, and the chain that it belongs to."""

    correlation_id: CorrelationId
    causation_id: EventId | None = None
    traceparent: str = ""
    """The trace that it belongs to, by W3C; empty where none is recorded."""


@dataclass(frozen=True, slots=True)
class Commit:
    """What a rule decided. The log gives it its event id and sequence when it is appended."""

    aggregate: Aggregate
    facts: tuple[Fact, ...]
    guard: Guard | None
    """None only where one writer owns the aggregate and order does not matter."""
    cause: Cause
    event_id: EventId | None = None
    """Set by who must know it beforehand; otherwise the log draws a random one."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Commits that stand or fall together, and why. More than one is an atomic batch."""

    commits: tuple[Commit, ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A commit as the log holds it."""

    sequence: int
    aggregate: Aggregate
    facts: tuple[Fact, ...]
    event_id: EventId
    correlation_id: CorrelationId
    causation_id: EventId | None
    actor: str
    at: float
    """When the log took it, in seconds since the epoch."""
    traceparent: str = ""

    @property
    def cause(self) -> Cause:
        """The cause to give to a commit that follows from this one."""
        return Cause(self.correlation_id, self.event_id, self.traceparent)

    @property
    def guard(self) -> Guard:
        """Holds as long as nothing has followed this commit on its aggregate."""
        return Guard(self.aggregate, self.sequence)
