"""Requests for change that wait for this service's answer."""

from dataclasses import dataclass, field

from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit, Decision, Guard, Recorded
from weft_contracts.facts.request import (
    DeleteRequested,
    DeployRequested,
    Fulfilled,
    Rejected,
    RetryRequested,
    TrialRequested,
    UnloadRequested,
)
from weft_contracts.ids import RequestId

from weft_reconciler.domain.sentence import short

Wish = DeployRequested | TrialRequested | DeleteRequested | RetryRequested | UnloadRequested


@dataclass(frozen=True, slots=True)
class Pending:
    """One request that is neither fulfilled nor rejected."""

    id: RequestId
    wish: Wish
    sequence: int
    at: float
    """When the log took it, in seconds since the epoch."""
    cause: Cause
    """What follows from the request bears this cause."""

    def fulfilled(self, **result: str) -> Commit:
        """The commit that closes the request, to stand in one batch with what it asked for."""
        return self._closing(Fulfilled(result=result))

    def rejected(self, status: int, reason: str) -> Decision:
        """The decision that closes the request and changes nothing else."""
        reason = short(reason)
        return Decision((self._closing(Rejected(status=status, reason=reason)),), why=reason)

    def _closing(self, fact: Fulfilled | Rejected) -> Commit:
        aggregate = subjects.request(self.id)
        return Commit(aggregate, (fact,), Guard(aggregate, self.sequence), self.cause)


@dataclass(slots=True)
class Requests:
    """All requests that wait, oldest first."""

    waiting: dict[RequestId, Pending] = field(default_factory=dict[RequestId, Pending])

    def apply(self, recorded: Recorded) -> None:
        """Fold a commit of a request. Requests that other services own are passed over."""
        id = RequestId(recorded.aggregate.key)
        for fact in recorded.facts:
            match fact:
                case DeployRequested() | TrialRequested() | DeleteRequested() | RetryRequested() | UnloadRequested():
                    self.waiting[id] = Pending(id, fact, recorded.sequence, recorded.at, recorded.cause)
                case Fulfilled() | Rejected():
                    self.waiting.pop(id, None)
                case _:
                    pass
