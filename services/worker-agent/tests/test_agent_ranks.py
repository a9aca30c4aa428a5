"""One rank of a group on this node: it starts once under each epoch, and what went before counts on."""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

import pytest
from weft_contracts import subjects
from weft_contracts.facts import run
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.values import DeviceClaim, Member
from weft_contracts.ids import Incarnation, NodeId, ReplicaId
from weft_testing import HandLog
from weft_worker_agent.domain.hosts import End, Host
from weft_worker_agent.domain.own_part import OwnPart, evolve
from weft_worker_agent.domain.reports import missing_reports
from weft_worker_agent.domain.restarts import MAX_RESTARTS, Tries
from weft_worker_agent.domain.steering import Retire, Start, steer

REPLICA = ReplicaId("m-x-1")
KILLED = End(-9, "killed", permanent=False)


@pytest.fixture
def part(hand_log: HandLog, node: NodeId, assigned: Callable[..., Assigned]) -> Callable[..., OwnPart]:
    """What is folded once rank 1 of a group was assigned under an epoch, and its run said these facts."""

    def make(epoch: int, *facts: run.RunFact) -> OwnPart:
        devices = (DeviceClaim(index=0, bytes=1000),)
        members = (Member(node=NodeId("n-other"), rank=0, devices=devices), Member(node=node, rank=1, devices=devices))
        hand_log.given(subjects.node(node), assigned(epoch=epoch).model_copy(update={"members": members}))
        for fact in facts:
            hand_log.given(subjects.run(node, REPLICA), fact)
        return reduce(evolve, hand_log.commits, OwnPart())

    return make


def host(epoch: int, end: End | None = None) -> Host:
    return Host(REPLICA, epoch, Incarnation(f"i-{epoch}"), started_at=0.0, end=end)


def loading(epoch: int) -> run.Loading:
    return run.Loading(epoch=epoch, incarnation=Incarnation(f"i-{epoch}"))


def starts(own: OwnPart, hosts: list[Host], tries: dict[ReplicaId, Tries], now: float) -> int:
    return sum(isinstance(action, Start) for action in steer(own, hosts, tries, now).actions)


def test_a_rank_that_ended_is_reported_and_waits_for_the_next_epoch(part: Callable[..., OwnPart]) -> None:
    own = part(1, loading(1))
    dead = host(1, KILLED)
    (report,) = missing_reports(own, [dead], {})
    assert isinstance(report.fact, run.Stopped)
    assert 0 == starts(own, [dead], {}, 1000.0)
    own = part(1, report.fact)
    assert 0 == starts(own, [], {}, 1000.0)
    assert 1 == starts(part(2), [], {}, 1000.0)


def test_a_rank_whose_group_starts_anew_ends_and_starts_under_the_new_epoch(part: Callable[..., OwnPart]) -> None:
    part(1, loading(1))
    own = part(2)
    (asked,) = steer(own, [host(1)], {}, 0.0).actions
    assert Retire(Incarnation("i-1"), 0.0) == asked
    assert 1 == starts(own, [replace(host(1), retire_at=0.0, end=KILLED)], {}, 1.0)


def test_a_rank_that_ends_again_and_again_waits_longer_and_is_given_up_over_all_epochs(
    part: Callable[..., OwnPart],
) -> None:
    tries: dict[ReplicaId, Tries] = {}
    own, now, waited = part(1), 0.0, list[float]()
    for epoch in range(1, MAX_RESTARTS + 2):
        own = part(epoch)
        plan = steer(own, [], tries, now)
        assert any(isinstance(action, Start) for action in plan.actions)
        own = part(epoch, loading(epoch))
        tries = dict(steer(own, [host(epoch, KILLED)], plan.tries, now).tries)
        waited.append(tries[REPLICA].next_at - now)
        if epoch <= MAX_RESTARTS:
            assert 0 == starts(part(epoch + 1), [], tries, now)
            now = tries[REPLICA].next_at
    assert waited[:MAX_RESTARTS] == sorted(waited[:MAX_RESTARTS])
    assert tries[REPLICA].given_up is not None
    (report,) = missing_reports(own, [host(MAX_RESTARTS + 1, KILLED)], tries)
    assert isinstance(report.fact, run.Failed)


def test_a_start_that_the_log_never_heard_of_is_made_again(part: Callable[..., OwnPart]) -> None:
    own, dead = part(1), host(1, KILLED)
    tries = dict(steer(own, [dead], {}, 0.0).tries)
    assert 1 == starts(own, [dead], tries, tries[REPLICA].next_at)
