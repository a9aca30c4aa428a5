"""DrainState: who begins and lifts them, when one is done, and what it leaves behind."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts import subjects
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.mesh import BrakeSet
from weft_contracts.facts.name import Released
from weft_contracts.facts.node import (
    Drained,
    Draining,
    Rejoined,
    Removed,
    Resumed,
    Unassigned,
    WentOffline,
)
from weft_contracts.facts.request import DrainRequested, Fulfilled, Rejected, RemovalRequested, ResumeRequested
from weft_contracts.facts.run import Loading, Stopped
from weft_contracts.ids import Incarnation, NodeId, ReplicaId

from .registry_story import Story, assigned, node

ONE = node(1)
HALF_A_MINUTE = DrainRequested(node=ONE, deadline_s=30)


@pytest.fixture
def story() -> Story:
    """Three healthy nodes; node 1 runs replicas 1 and 2."""
    story = Story()
    story.nodes(3)
    for number in (1, 2):
        assign(story, number)
    return story


def replica(number: int) -> ReplicaId:
    return ReplicaId(f"m-toy-{number}")


def assign(story: Story, number: int) -> None:
    story.log.given(subjects.node(ONE), assigned(ONE, replica(number)))
    loading = Loading(epoch=1, incarnation=Incarnation(f"i-{number}"))
    story.log.given(subjects.run(ONE, replica(number)), loading)


def retire(story: Story, number: int) -> None:
    story.log.given(subjects.node(ONE), Unassigned(replica=replica(number), deadline_s=1, why="drains"))


def stop(story: Story, number: int, unfinished: int = 0) -> None:
    stopped = Stopped(epoch=1, why="retired", unfinished=unfinished)
    story.log.given(subjects.run(ONE, replica(number)), stopped)


def tell(story: Story, fact: Fact) -> Fact:
    return story.answered(story.ask(fact))


def said(story: Story, *kinds: type[Fact]) -> list[Fact]:
    return [fact for fact in story.log.facts(subjects.node(ONE)) if isinstance(fact, kinds)]


def refusal(outcome: Fact) -> tuple[int, str]:
    assert isinstance(outcome, Rejected)
    return outcome.status, outcome.reason


def empty(story: Story) -> None:
    """All that ran on node 1 is retired and has stopped."""
    for number in (1, 2):
        retire(story, number)
        stop(story, number)
    story.settle()


def test_a_node_is_drained_after_its_last_run_has_stopped_and_not_before(story: Story) -> None:
    assert isinstance(tell(story, HALF_A_MINUTE), Fulfilled)
    assert [Draining(why="admin", deadline_s=30, by="gateway")] == said(story, Draining)
    for number in (1, 2):
        retire(story, number)
    stop(story, 1)
    assert [] == story.settle()
    assert "draining" == story.view(1).state
    stop(story, 2)
    assert [Drained()] == story.settle()
    assert "drained" == story.view(1).state
    # and it follows from the drain, and is said once
    begun = next(commit for commit in story.log.commits if isinstance(commit.facts[0], Draining))
    drained = story.log.commits[-1]
    assert (begun.correlation_id, begun.event_id) == (drained.correlation_id, drained.causation_id)
    assert [] == story.settle()


def test_what_did_not_finish_in_time_stands_in_the_event(story: Story) -> None:
    retire(story, 1)
    stop(story, 1, unfinished=9)  # before the drain: not its affair
    tell(story, HALF_A_MINUTE)
    assign(story, 3)
    for number in (2, 3):
        retire(story, number)
    stop(story, 2)
    stop(story, 3, unfinished=4)
    assert [Drained(unfinished={replica(3): 4})] == story.settle()
    assert {replica(3): 4} == story.view(1).unfinished


def test_a_node_without_replicas_is_drained_at_once(story: Story) -> None:
    two = node(2)
    tell(story, DrainRequested(node=two, deadline_s=30))
    assert "drained" == story.view(2).state


def test_a_node_that_is_gone_is_drained_when_all_of_it_was_replaced(story: Story) -> None:
    story.speaking.remove(1)
    tell(story, HALF_A_MINUTE)
    story.live(12)
    assert "offline" == story.view(1).state
    for number in (1, 2):
        retire(story, number)
    story.settle()
    assert "drained" == story.view(1).state


def test_an_admins_drain_stays_until_an_admin_lifts_it(story: Story) -> None:
    tell(story, HALF_A_MINUTE)
    empty(story)
    # neither the node's return nor its own word lifts it
    story.join(1, story.token())
    assert "drained" == story.view(1).state
    status, reason = refusal(tell(story, ResumeRequested(node=ONE, why="worker")))
    assert (409, True) == (status, "only an admin" in reason)
    # an admin does, once
    for _ in range(2):
        assert isinstance(tell(story, ResumeRequested(node=ONE)), Fulfilled)
    assert [Resumed()] == said(story, Resumed)
    assert "healthy" == story.view(1).state


@pytest.mark.parametrize("how", ["joins", "says so"])
def test_a_workers_own_drain_ends_when_it_is_back(story: Story, how: str) -> None:
    tell(story, DrainRequested(node=ONE, why="worker", deadline_s=30))
    assert [Draining(why="worker", deadline_s=30, by=ONE)] == said(story, Draining)
    empty(story)
    if how == "joins":
        story.join(1, story.token())
        assert [Rejoined, Resumed] == [type(fact) for fact in said(story, Rejoined, Resumed)]
    else:
        tell(story, ResumeRequested(node=ONE, why="worker"))
    assert "healthy" == story.view(1).state


def test_a_worker_that_stops_leaves_an_admins_drain_an_admins(story: Story) -> None:
    tell(story, HALF_A_MINUTE)
    assert isinstance(tell(story, DrainRequested(node=ONE, why="worker", deadline_s=5)), Fulfilled)
    story.join(1, story.token())
    assert "draining" == story.view(1).state
    # the other way round it becomes the admin's
    tell(story, ResumeRequested(node=ONE))
    tell(story, DrainRequested(node=ONE, why="worker", deadline_s=5))
    tell(story, HALF_A_MINUTE)
    story.join(1, story.token())
    assert "draining" == story.view(1).state


def test_a_drain_asked_for_again_gets_another_deadline_and_a_drained_node_nothing(story: Story) -> None:
    tell(story, HALF_A_MINUTE)
    tell(story, DrainRequested(node=ONE, deadline_s=3))
    assert [30, 3] == [fact.deadline_s for fact in said(story, Draining) if isinstance(fact, Draining)]
    assert story.log.now + 3 == story.view(1).drain_ends_at
    empty(story)
    assert isinstance(tell(story, HALF_A_MINUTE), Fulfilled)
    assert 2 == len(said(story, Draining))


def test_only_an_approved_node_can_be_drained_and_not_for_ever(story: Story) -> None:
    story.join(4, story.token("weak", approves=False))
    assert 409 == refusal(tell(story, DrainRequested(node=node(4), deadline_s=1)))[0]
    assert 400 == refusal(tell(story, DrainRequested(node=ONE, deadline_s=1e9)))[0]
    assert 404 == refusal(tell(story, DrainRequested(node=NodeId("n-none"), deadline_s=1)))[0]
    assert 404 == refusal(tell(story, ResumeRequested(node=NodeId("n-none"))))[0]


# removal


def test_a_removal_drains_first_and_the_node_is_removed_with_its_last_run(story: Story) -> None:
    outcome = tell(story, RemovalRequested(node=ONE, why="sold", deadline_s=30))
    assert Fulfilled(result={"node": ONE, "state": "draining"}) == outcome
    assert not story.view(1).removed
    empty(story)
    assert [Drained(), Removed(why="sold")] == said(story, Drained, Removed)
    assert [Released()] == story.log.facts(subjects.name("node", "node-1"))[-1:]


def test_the_end_of_a_drain_says_whether_the_node_leaves_with_it(story: Story) -> None:
    tell(story, RemovalRequested(node=ONE, deadline_s=30))
    for number in (1, 2):
        retire(story, number)
        stop(story, number)
    assert {"node-1 is drained, and leaves"} == {decision.why for decision in story.decided()}


@pytest.mark.parametrize(("count", "more"), [(5, ""), (6, " and others")])
def test_a_refused_removal_names_five_of_what_would_be_lost(story: Story, count: int, more: str) -> None:
    for number in range(3, count + 1):
        assign(story, number)
    reason = refusal(tell(story, RemovalRequested(node=ONE)))[1]
    named = ", ".join(replica(number) for number in range(1, 6))
    assert f"{count} replicas of node-1 would be lost ({named}{more}):" in reason


def test_a_resumed_node_is_not_removed_after_all(story: Story) -> None:
    tell(story, RemovalRequested(node=ONE, deadline_s=30))
    tell(story, ResumeRequested(node=ONE))
    empty(story)
    assert [] == said(story, Drained, Removed)
    # while another deadline leaves it what it is
    assign(story, 1)
    tell(story, RemovalRequested(node=ONE, deadline_s=30))
    tell(story, HALF_A_MINUTE)
    empty(story)
    assert story.view(1).removed


def test_a_forced_removal_and_one_of_an_empty_node_wait_for_nothing(story: Story) -> None:
    tell(story, RemovalRequested(node=ONE, force=True, deadline_s=30))
    outcome = tell(story, RemovalRequested(node=node(2), deadline_s=30))
    assert Fulfilled(result={"node": node(2), "state": "removed"}) == outcome
    assert (True, True) == (story.view(1).removed, story.view(2).removed)


# the brake


def test_who_was_drained_may_go_without_setting_the_brake(story: Story) -> None:
    # given two of three drained
    empty(story)
    for number in (1, 2):
        tell(story, DrainRequested(node=node(number), why="worker", deadline_s=30))
    assert ["drained", "drained", "healthy"] == story.states([1, 2, 3])
    # when they leave
    story.speaking = {3}
    facts = story.live(30)
    # then they are gone in order, and whoever else is lost is replaced
    assert [] == [fact for fact in facts if isinstance(fact, BrakeSet)]
    assert ["drained", "drained", "healthy"] == story.states([1, 2, 3])
    story.speaking = set()
    assert [WentOffline] == [type(fact) for fact in story.live(30) if isinstance(fact, WentOffline | BrakeSet)]


# whatever happens

_ASKED = st.sampled_from(
    [
        HALF_A_MINUTE,
        DrainRequested(node=ONE, why="worker", deadline_s=5),
        ResumeRequested(node=ONE),
        ResumeRequested(node=ONE, why="worker"),
        RemovalRequested(node=ONE, deadline_s=5),
        RemovalRequested(node=ONE),
    ]
)
_HAPPENS = st.sampled_from(["join", "assign", "retire", "stop", "lose", "find"])


@settings(max_examples=80, deadline=None)
@given(st.lists(st.one_of(_ASKED, _HAPPENS), max_size=16))
def test_drained_is_said_once_a_drain_and_only_while_nothing_is_assigned(steps: list[Any]) -> None:
    # given
    story = Story()
    token = story.token()
    story.join(1, token)
    story.speaking = {1}
    story.live(3)
    for step in steps:
        view = story.view(1)
        # when
        match step:
            case "join":
                story.join(1, token)
            case "assign" if view.takes_replicas and replica(1) not in story.state.fleet.assigned(ONE).assignments:
                assign(story, 1)
            case "retire" if story.state.fleet.replicas_on(ONE):
                retire(story, 1)
            case "stop" if story.state.fleet.replicas_on(ONE):
                stop(story, 1)
            case "lose" if not view.removed:
                story.log.given(subjects.node(ONE), WentOffline(silent_for=9))
            case Fact():
                tell(story, step)
            case _:
                pass
        story.settle()
        # then
        after = story.view(1)
        if after.drained and not after.gone:
            assert () == story.state.fleet.replicas_on(ONE)
        if after.draining and not after.drained and not after.removed:
            assert story.state.fleet.replicas_on(ONE)
    spans: list[list[Fact]] = [[]]
    for fact in said(story, Draining, Drained, Resumed):
        if not isinstance(fact, Drained):
            spans.append([])
        spans[-1].append(fact)
    for span in spans:
        assert 1 >= sum(isinstance(fact, Drained) for fact in span)
        assert not any(isinstance(fact, Drained) for fact in span) or isinstance(span[0], Draining)
