"""Requests for change that wait for one service's answer, and the answer."""

from dataclasses import dataclass, field, replace

from weft_contracts.catalogue import Writer, owner_of
from weft_contracts.commit import Cause, Commit, Decision, Guard, Recorded
from weft_contracts.facts.request import ChangeRequest, Fulfilled, Rejected, TaggedChangeRequest
from weft_contracts.ids import RequestId
from weft_contracts.subjects import Aggregate, request

from weft_requests.reason import shortened


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """One request that is neither fulfilled nor rejected."""

    id: RequestId
    asked: TaggedChangeRequest
    actor: str
    cause: Cause
    """What follows from the request bears this cause."""
    at: float
    """When the log took it, in seconds since the epoch."""
    sequence: int
    """Of its aggregate's last commit."""

    @property
    def aggregate(self) -> Aggregate:
        return request(self.id)

    @property
    def guard(self) -> Guard:
        """Holds as long as nobody has answered."""
        return Guard(self.aggregate, self.sequence)

    def fulfilled(self, why: str, *changes: Commit, **result: str) -> Decision:
        """The request is done, in one batch with what was asked for; `result` names what arose."""
        return Decision((*changes, self._outcome(Fulfilled(result=result))), why)

    def rejected(self, status: int, reason: str) -> Decision:
        """The request is refused, and nothing changes. `status`: the HTTP status that says it best."""
        reason = shortened(reason)
        return Decision((self._outcome(Rejected(status=status, reason=reason)),), why=reason)

    def _outcome(self, fact: Fulfilled | Rejected) -> Commit:
        return Commit(self.aggregate, (fact,), self.guard, self.cause)


@dataclass(slots=True)
class PendingRequests:
    """All requests that wait for their owner's answer, oldest first."""

    owner: Writer = field(compare=False)
    waiting: dict[RequestId, PendingRequest] = field(default_factory=dict[RequestId, PendingRequest])

    def apply(self, recorded: Recorded) -> None:
        """Fold a commit of a request. Requests that other services own are passed over."""
        id = RequestId(recorded.aggregate.key)
        for fact in recorded.facts:
            if isinstance(fact, Fulfilled | Rejected):
                self.waiting.pop(id, None)
            elif isinstance(fact, ChangeRequest) and owner_of(fact) == self.owner:
                self.waiting[id] = PendingRequest(
                    id, fact, recorded.actor, recorded.cause, recorded.at, recorded.sequence
                )
        if id in self.waiting:  # a commit without a readable fact moves it all the same
            self.waiting[id] = replace(self.waiting[id], sequence=recorded.sequence)
