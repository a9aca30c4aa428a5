"""Requests, many and in any order: each is answered once, and what they share stays true."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts import subjects
from weft_contracts.facts.node import Healthy
from weft_contracts.facts.request import ApprovalRequested, Fulfilled, JoinRequested
from weft_contracts.ids import TokenId
from weft_registry.domain.decide import REQUESTS_A_ROUND
from weft_registry.domain.failure_detector import Observations

from .registry_story import HERE, Story, nkey, node


@pytest.fixture
def story() -> Story:
    return Story()


def test_many_join_in_a_few_rounds_and_each_is_answered_once(story: Story) -> None:
    count = REQUESTS_A_ROUND + 10
    id = story.token(most_waiting=count)
    for number in range(count):
        story.ask(JoinRequested(token=id, name=f"n{number}", public_key=nkey(number), addresses=HERE))
    assert REQUESTS_A_ROUND == len(story.log.take(story.decided())) // 3
    story.settle()
    assert count == sum(isinstance(fact, Fulfilled) for fact in story.log.facts())
    assert {} == story.state.requests.waiting


def test_a_request_that_nothing_may_be_decided_about_holds_up_no_other(story: Story) -> None:
    """The decider drops what touches a suspect aggregate: the next request is in the same round."""
    id = story.token()
    for number in (1, 2):
        story.ask(JoinRequested(token=id, name=f"n{number}", public_key=nkey(number), addresses=HERE))
    touched = [{commit.aggregate for commit in decision.commits} for decision in story.decided()]
    assert [True, True] == [subjects.node(node(n)) in aggregates for n, aggregates in zip((1, 2), touched, strict=True)]


@pytest.mark.parametrize("which", ["request", "name", "node"])
def test_after_a_commit_without_a_readable_fact_decisions_still_hold(story: Story, which: str) -> None:
    """What could not be read has moved its aggregate all the same; `take` fails where a guard is lost."""
    # given
    id = story.token(approves=False)
    story.join(1, id)
    request = story.ask(JoinRequested(token=story.token("more"), name="node-1", public_key=nkey(1), addresses=HERE))
    garbled = {"request": request, "name": subjects.name("node", "node-2"), "node": subjects.node(node(1))}
    # when
    story.log.given(garbled[which])
    # then
    assert isinstance(story.answered(request), Fulfilled)
    assert isinstance(story.join(2, id), Fulfilled)


# whatever happens


@st.composite
def asked(draw: st.DrawFn) -> tuple[str, int, int]:
    return draw(st.sampled_from(["join", "approve"])), draw(st.integers(0, 2)), draw(st.integers(0, 2))


@settings(max_examples=60, deadline=None)
@given(st.lists(asked(), max_size=12))
def test_every_request_is_answered_once_and_names_and_keys_stay_one_to_one(steps: list[tuple[str, int, int]]) -> None:
    # given
    story = Story()
    tokens = [story.token("plain", approves=False), story.token("good"), TokenId("t-unknown")]
    # when several ask at once
    requests = [
        story.ask(
            JoinRequested(token=tokens[other], name=f"n{other}", public_key=nkey(number), addresses=HERE)
            if what == "join"
            else ApprovalRequested(node=node(number))
        )
        for what, number, other in steps
    ]
    story.settle()
    # then
    for request in requests:
        assert 2 == len(story.log.facts(request))
    names = [view.name for view in story.state.fleet.nodes.values()]
    assert len(set(names)) == len(names)
    assert set(story.state.fleet.nodes) == {claim.owner for claim in story.state.names.values()}


observations = st.builds(
    Observations,
    alive=st.frozensets(st.sampled_from([node(n) for n in range(3)])),
    silence=st.dictionaries(st.sampled_from([node(n) for n in range(3)]), st.floats(0, 20)),
    healthy_before=st.frozensets(st.sampled_from([node(n) for n in range(3)])),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(observations, st.integers(0, 2)), max_size=8))
def test_pending_never_becomes_healthy_whatever_is_heard(steps: list[Observations | int]) -> None:
    story = Story()
    token = story.token(approves=False)
    for step in steps:
        if isinstance(step, int):
            story.join(step, token)
        else:
            assert [] == story.settle(step)
    # and no fact of its own makes it so
    for number, view in enumerate(list(story.state.fleet.nodes.values())):
        story.log.given(subjects.node(view.id), Healthy())
        after = story.state.fleet.nodes[view.id]
        assert ("pending", False) == (after.presence, after.takes_replicas), number
