"""A request for change and its outcome, folded from its own facts."""

from dataclasses import dataclass, replace

from weft_api import RequestState
from weft_contracts.commit import Recorded
from weft_contracts.facts.request import ChangeRequest, Fulfilled, Rejected, TaggedChangeRequest
from weft_contracts.ids import RequestId


@dataclass(frozen=True, slots=True)
class RequestView:
    """One request. `asked` is the fact that it began with."""

    id: RequestId
    asked: TaggedChangeRequest
    actor: str
    correlation_id: str
    event_id: str
    number: int
    """Log sequence of its first commit: later requests have larger ones."""
    sequence: int
    """Of its last commit."""
    at: float
    """When it was asked, in seconds since the epoch."""
    outcome: Fulfilled | Rejected | None = None
    ended_at: float | None = None

    @property
    def state(self) -> RequestState:
        match self.outcome:
            case None:
                return "pending"
            case Fulfilled():
                return "fulfilled"
            case Rejected():
                return "rejected"


def evolve_request(view: RequestView | None, recorded: Recorded) -> RequestView | None:
    """The request after one of its commits. An outcome without a request is no request; the first one counts."""
    for fact in recorded.facts:
        if isinstance(fact, Fulfilled | Rejected):
            if view is not None and view.outcome is None:
                view = replace(view, outcome=fact, ended_at=recorded.at, sequence=recorded.sequence)
        elif view is None and isinstance(fact, ChangeRequest):
            view = RequestView(
                id=RequestId(recorded.aggregate.key),
                asked=fact,
                actor=recorded.actor,
                correlation_id=recorded.correlation_id,
                event_id=recorded.event_id,
                number=recorded.sequence,
                sequence=recorded.sequence,
                at=recorded.at,
            )
    return view
