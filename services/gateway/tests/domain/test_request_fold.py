"""A request for change and its outcome, as they are folded and shown."""

import pytest
from weft_contracts.commit import Cause
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.request import ApprovalRequested, Fulfilled, Rejected
from weft_contracts.ids import CorrelationId, NodeId, RequestId
from weft_contracts.subjects import request
from weft_gateway.domain.request_view import RequestView, evolve_request
from weft_gateway.domain.shapes import event_shape, request_shape
from weft_testing import HandLog

ID = RequestId("r-1")
ASKED = ApprovalRequested(node=NodeId("n-a"))
DONE, NOT_DONE = Fulfilled(result={"node": "n-a"}), Rejected(status=404, reason="no such node")


def after(*facts: Fact) -> RequestView | None:
    """The request after these facts, each a commit of its own, ten seconds apart."""
    log, found = HandLog(start_at=100.0), None
    for fact in facts:
        found = evolve_request(found, log.given(request(ID), fact, actor="k-1", cause=Cause(CorrelationId("c-1"))))
        log.now += 10
    return found


@pytest.mark.parametrize(
    ("facts", "state", "ended_at", "sequence"),
    [
        ((ASKED,), "pending", None, 1),
        ((ASKED, DONE), "fulfilled", 110.0, 2),
        ((ASKED, NOT_DONE), "rejected", 110.0, 2),
        ((ASKED, DONE, NOT_DONE), "fulfilled", 110.0, 2),
        ((ASKED, NOT_DONE, DONE), "rejected", 110.0, 2),
        ((ASKED, ASKED), "pending", None, 1),
    ],
)
def test_a_request_has_one_outcome_and_the_first_one_counts(
    facts: tuple[Fact, ...], state: str, ended_at: float | None, sequence: int
) -> None:
    found = after(*facts)
    assert found is not None
    assert (state, ended_at, sequence) == (found.state, found.ended_at, found.sequence)
    assert (1, 100.0, "k-1", "c-1", "e1") == (
        found.number,
        found.at,
        found.actor,
        found.correlation_id,
        found.event_id,
    )


def test_an_outcome_without_a_request_is_none() -> None:
    assert after(DONE) is None
    found = after(DONE, ASKED)
    assert found is not None
    assert "pending" == found.state


def test_a_request_is_shown_with_what_was_asked_and_what_came_of_it() -> None:
    pending, done, not_done = (after(*facts) for facts in ((ASKED,), (ASKED, DONE), (ASKED, NOT_DONE)))
    assert pending is not None
    assert done is not None
    assert not_done is not None
    shown = {
        "id": "r-1",
        "number": 1,
        "type": "approval_requested",
        "state": "pending",
        "actor": "k-1",
        "correlation_id": "c-1",
        "asked": {"node": "n-a"},
        "at": 100.0,
        "ended_at": None,
        "result": None,
        "status": None,
        "reason": None,
    }
    assert shown == request_shape(pending)
    assert shown | {"state": "fulfilled", "ended_at": 110.0, "result": {"node": "n-a"}} == request_shape(done)
    rejected = {"state": "rejected", "ended_at": 110.0, "status": 404, "reason": "no such node"}
    assert shown | rejected == request_shape(not_done)


def test_a_commit_is_shown_with_all_that_the_log_has_of_it() -> None:
    recorded = HandLog(start_at=100.0).given(request(ID), ASKED, actor="k-1", cause=Cause(CorrelationId("c-1")))
    assert {
        "sequence": 1,
        "kind": "request",
        "key": "r-1",
        "facts": [{"type": "approval_requested", "v": 1, "node": "n-a"}],
        "event_id": "e1",
        "correlation_id": "c-1",
        "causation_id": None,
        "actor": "k-1",
        "at": 100.0,
    } == event_shape(recorded)
