"""A log in the hand: for given, when, then over pure rules, with the real log's guards and no server."""

from collections.abc import Callable, Sequence

from weft_contracts.commit import Cause, Commit, Decision, Recorded
from weft_contracts.facts.fact import Fact
from weft_contracts.ids import CorrelationId, EventId
from weft_contracts.subjects import Aggregate


class GuardLost(AssertionError):
    """A decision was made under a guard that does not hold: at a real log it would be a conflict."""


class BatchRefused(AssertionError):
    """A batch has two commits on one aggregate: a real log refuses it whole."""


class HandLog:
    """Commits in memory, in order, with event ids that count up. Feeds every commit to its listeners."""

    def __init__(self, *listeners: Callable[[Recorded], None], start_at: float = 1_700_000_000.0) -> None:
        self.commits: list[Recorded] = []
        self.now = start_at
        """Seconds since the epoch; advance it by hand."""
        self._listeners = list(listeners)
        self._last: dict[Aggregate, int] = {}

    @property
    def head(self) -> int:
        return len(self.commits)

    def listen(self, listener: Callable[[Recorded], None]) -> None:
        """Feed a further fold: what there is at once, then what comes."""
        for commit in self.commits:
            listener(commit)
        self._listeners.append(listener)

    def given(
        self, aggregate: Aggregate, *facts: Fact, cause: Cause | Recorded | None = None, actor: str = "test"
    ) -> Recorded:
        """Append facts without a guard."""
        if isinstance(cause, Recorded):
            cause = cause.cause
        return self._append(Commit(aggregate, facts, None, cause or Cause(CorrelationId("c-given"))), actor)

    def take(self, decisions: Sequence[Decision], actor: str = "test") -> list[Recorded]:
        """Append decisions as the real log would. Raises GuardLost, BatchRefused."""
        taken: list[Recorded] = []
        for decision in decisions:
            for commit in decision.commits:
                guard = commit.guard
                if guard is not None and self._last.get(guard.aggregate, 0) != guard.sequence:
                    raise GuardLost(
                        f"{guard.aggregate} stands at {self._last.get(guard.aggregate, 0)}, "
                        f"the decision on {commit.aggregate} expects {guard.sequence}"
                    )
            touched = [commit.aggregate for commit in decision.commits]
            if len(set(touched)) != len(touched):
                raise BatchRefused(f"one batch has two commits on one aggregate: {touched}")
            taken += [self._append(commit, actor) for commit in decision.commits]
        return taken

    def facts(self, aggregate: Aggregate | None = None) -> list[Fact]:
        """Every fact so far, of one aggregate or of all."""
        return [f for c in self.commits if aggregate in (None, c.aggregate) for f in c.facts]

    def _append(self, commit: Commit, actor: str) -> Recorded:
        sequence = len(self.commits) + 1
        recorded = Recorded(
            sequence=sequence,
            aggregate=commit.aggregate,
            facts=commit.facts,
            event_id=commit.event_id or EventId(f"e{sequence}"),
            correlation_id=commit.cause.correlation_id,
            causation_id=commit.cause.causation_id,
            actor=actor,
            at=self.now,
        )
        self.commits.append(recorded)
        self._last[commit.aggregate] = sequence
        for listener in self._listeners:
            listener(recorded)
        return recorded
