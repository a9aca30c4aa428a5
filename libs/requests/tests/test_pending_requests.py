"""Requests for change: each waits for its owner alone, and is answered once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts import subjects
from weft_contracts.catalogue import OWNERS, Writer, owner_of
from weft_contracts.commit import Commit, Decision, Guard, Recorded
from weft_contracts.facts.mesh import BrakeLifted
from weft_contracts.facts.node import Cordoned
from weft_contracts.facts.request import (
    BrakeLiftRequested,
    ChangeRequest,
    CordonRequested,
    DeleteRequested,
    Fulfilled,
    KeyRevocationRequested,
    Rejected,
)
from weft_contracts.ids import KeyId, ModelId, NodeId, RequestId
from weft_contracts.subjects import MESH
from weft_requests import PendingRequest, PendingRequests
from weft_testing import GuardLost, HandLog
from weft_testing.histories import check_snapshots, histories

NODE = NodeId("n-a")
ASKED: tuple[ChangeRequest, ...] = (
    CordonRequested(node=NODE),
    DeleteRequested(model=ModelId("m-a")),
    KeyRevocationRequested(key=KeyId("k-a")),
)
"""One of each owner."""
ANSWERS: tuple[Writer, ...] = ("registry", "reconciler", "gateway")


def requests(log: HandLog, owner: Writer = "registry") -> PendingRequests:
    found = PendingRequests(owner)
    log.listen(found.apply)
    return found


def ask(log: HandLog, fact: ChangeRequest, id: str = "q-1") -> Recorded:
    return log.given(subjects.request(RequestId(id)), fact, actor="somebody")


def only(found: PendingRequests) -> PendingRequest:
    (pending,) = found.waiting.values()
    return pending


@pytest.mark.parametrize("fact", ASKED, ids=lambda fact: fact.type)
def test_a_request_waits_for_its_owner_and_for_nobody_else(fact: ChangeRequest) -> None:
    log = HandLog()
    ask(log, fact)
    assert [owner_of(fact)] == [owner for owner in ANSWERS if requests(log, owner).waiting]


def test_a_pending_request_knows_who_asked_when_and_what_follows_from_it() -> None:
    log = HandLog()
    asked = ask(log, CordonRequested(node=NODE, why="a fan"))
    pending = only(requests(log))
    assert (CordonRequested(node=NODE, why="a fan"), "somebody", log.now) == (pending.asked, pending.actor, pending.at)
    assert (asked.cause, Guard(asked.aggregate, 1)) == (pending.cause, pending.guard)


def test_requests_wait_oldest_first() -> None:
    log = HandLog()
    for id in ("q-2", "q-3", "q-1"):
        ask(log, BrakeLiftRequested(), id)
    assert ["q-2", "q-3", "q-1"] == list(requests(log).waiting)


def test_what_was_asked_for_and_its_outcome_are_one_batch() -> None:
    # given
    log = HandLog()
    asked, found = ask(log, CordonRequested(node=NODE)), requests(log)
    change = Commit(subjects.node(NODE), (Cordoned(why=""),), Guard(subjects.node(NODE), 0), asked.cause)
    # when
    log.take([only(found).fulfilled("it is cordoned", change, node=NODE)])
    # then
    assert [Cordoned(why=""), Fulfilled(result={"node": NODE})] == log.facts()[1:]
    assert {} == found.waiting


def test_a_rejected_request_changes_nothing() -> None:
    log = HandLog()
    asked, found = ask(log, CordonRequested(node=NODE)), requests(log)
    log.take([only(found).rejected(404, "there is no such node")])
    assert [Rejected(status=404, reason="there is no such node")] == log.facts()[1:]
    assert asked.aggregate == log.commits[-1].aggregate
    assert {} == found.waiting


def fulfil(pending: PendingRequest) -> Decision:
    return pending.fulfilled("done")


def reject(pending: PendingRequest) -> Decision:
    return pending.rejected(409, "no")


@pytest.mark.parametrize("late", [fulfil, reject])
def test_a_request_is_answered_once_whoever_decides(late: Callable[[PendingRequest], Decision]) -> None:
    # given: two deciders see the same request
    log = HandLog()
    ask(log, BrakeLiftRequested())
    one, other = only(requests(log)), only(requests(log))
    # when
    log.take([one.fulfilled("done", Commit(MESH, (BrakeLifted(why=""),), Guard(MESH, 0), one.cause))])
    # then
    with pytest.raises(GuardLost):
        log.take([late(other)])


def test_a_commit_without_a_readable_fact_moves_the_guard() -> None:
    log = HandLog()
    asked = ask(log, BrakeLiftRequested())
    found = requests(log)
    log.given(asked.aggregate)
    assert Guard(asked.aggregate, 2) == only(found).guard
    log.take([only(found).fulfilled("done")])


def test_a_reason_of_any_length_fits_into_a_commit() -> None:
    log = HandLog()
    ask(log, BrakeLiftRequested())
    log.take([only(requests(log)).rejected(422, "no " * 100_000)])
    outcome = log.facts()[-1]
    assert isinstance(outcome, Rejected)
    assert (2000, "…") == (len(outcome.reason), outcome.reason[-1])


@dataclass(slots=True)
class Memory:
    requests: PendingRequests = field(default_factory=lambda: PendingRequests("registry"))


@given(histories(), st.floats(0, 1))
def test_pending_requests_come_back_from_a_snapshot_as_they_were(history: list[Recorded], part: float) -> None:
    def fold(memory: Memory, commits: Sequence[Recorded]) -> None:
        for commit in commits:
            if commit.aggregate.kind == "request":
                memory.requests.apply(commit)

    whole, _ = check_snapshots(Memory, fold, history, int(part * len(history)))
    assert all(OWNERS[type(each.asked)] == "registry" for each in whole.requests.waiting.values())
