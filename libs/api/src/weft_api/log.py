"""Answers about the event log and requests for change. Times are seconds since the epoch."""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

RequestState = Literal["pending", "fulfilled", "rejected"]


class Fact(TypedDict):
    """A fact as the log has it: beside these the fields of its type, see `weft events --catalogue`."""

    type: str
    v: int


class Commit(TypedDict):
    """A commit of the log."""

    sequence: int
    kind: str
    key: str
    facts: list[Fact]
    event_id: str
    correlation_id: str
    causation_id: str | None
    actor: str
    at: float
    names: NotRequired[dict[str, str]]
    """What people call those whom the key names; in streams alone."""


class CommitPage(TypedDict):
    """Commits in their order, the position that the next page follows, and the log's last."""

    items: list[Commit]
    next: int | None
    head: int


class ChangeRequest(TypedDict):
    """A request for change and its outcome. `asked` is what was asked for, `result` what arose."""

    id: str
    number: int
    type: str
    state: RequestState
    actor: str
    correlation_id: str
    asked: dict[str, Any]
    at: float
    ended_at: float | None
    result: dict[str, str] | None
    status: int | None
    reason: str | None


class ChangeRequestPage(TypedDict):
    """Requests, the newest first, and the `number` that the next page comes before."""

    items: list[ChangeRequest]
    next: int | None
