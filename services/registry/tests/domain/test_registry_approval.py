"""Approval comes from an admin's word about this node, or from a token that carries it: from nothing else."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts import subjects
from weft_contracts.facts.node import Healthy, WentOffline
from weft_contracts.facts.request import Fulfilled, JoinRequested, Rejected
from weft_contracts.ids import TokenId
from weft_registry.domain.state import RegistryState

from .registry_story import HERE, Story, nkey, node

PLAIN, GOOD, REVOKED, EXPIRED, MADE_UP = range(5)


def asks(story: Story, number: int, token: TokenId, name: str = "") -> Fulfilled | Rejected:
    outcome = story.join(number, token, **({"name": name} if name else {}))
    assert isinstance(outcome, Fulfilled | Rejected)
    return outcome


@pytest.fixture
def waiting() -> Story:
    """Node 1 waits for approval; node 2 is approved and works."""
    story = Story()
    asks(story, 1, story.token("plain", approves=False))
    asks(story, 2, story.token("good"))
    story.speaking = {2}
    story.live(40)
    assert ["pending", "healthy"] == story.states([1, 2])
    return story


def speaks(story: Story) -> None:
    story.speaking = {1, 2}
    story.live(10)


def falls_silent_and_returns(story: Story) -> None:
    speaks(story)
    story.speaking = {2}
    story.live(20)
    speaks(story)


def outlives_the_registry(story: Story) -> None:
    again = RegistryState()
    story.log.listen(again.apply)  # all of it anew
    assert again == story.state
    story.state = again
    story.live(40)


def outlives_the_log(story: Story) -> None:
    story.live(60, log_there=False)
    story.live(20)


def comes_with_another_token(story: Story) -> None:
    assert isinstance(asks(story, 1, story.token("another", approves=False)), Fulfilled)


def comes_with_a_token_that_approves_no_more(story: Story) -> None:
    spent = story.token("spent", expires_at=story.log.now - 1)
    revoked = story.token("revoked")
    story.revoke(revoked)
    for token in (spent, revoked, TokenId("t-made-up")):
        assert 401 == getattr(asks(story, 1, token), "status", None)


def comes_under_another_name(story: Story) -> None:
    assert 409 == getattr(asks(story, 1, story.token("more", approves=False), name="better"), "status", None)


def takes_the_approved_nodes_name(story: Story) -> None:
    assert 409 == getattr(asks(story, 1, story.token("more", approves=False), name="node-2"), "status", None)
    assert 409 == getattr(asks(story, 3, story.token("good2"), name="node-2"), "status", None)


def another_is_approved(story: Story) -> None:
    asks(story, 4, story.token("more", approves=False))
    assert isinstance(story.approve(node(4)), Fulfilled)


def facts_of_its_life_are_written(story: Story) -> None:
    story.log.given(subjects.node(node(1)), WentOffline(silent_for=9.0))
    story.log.given(subjects.node(node(1)), Healthy())
    story.settle()


@pytest.mark.parametrize(
    "tries",
    [
        speaks,
        falls_silent_and_returns,
        outlives_the_registry,
        outlives_the_log,
        comes_with_another_token,
        comes_with_a_token_that_approves_no_more,
        comes_under_another_name,
        takes_the_approved_nodes_name,
        another_is_approved,
        facts_of_its_life_are_written,
    ],
)
def test_a_node_that_waits_for_approval_waits_whatever_it_tries(waiting: Story, tries: Callable[[Story], None]) -> None:
    tries(waiting)
    view = waiting.state.fleet.nodes[node(1)]
    assert ("pending", False, False) == (view.state, view.approved, view.takes_replicas)
    assert "healthy" == waiting.state.fleet.nodes[node(2)].state


step = st.one_of(
    st.tuples(st.just("join"), st.integers(1, 3), st.integers(PLAIN, MADE_UP), st.integers(1, 3)),
    st.tuples(st.just("approve"), st.integers(1, 3), st.just(0), st.just(0)),
    st.tuples(st.just("live"), st.integers(1, 12), st.integers(0, 7), st.just(0)),
    st.tuples(st.just("replay"), st.just(0), st.just(0), st.just(0)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(step, max_size=10))
def test_who_is_approved_is_exactly_whom_an_admin_or_an_approving_token_let_in(
    steps: list[tuple[str, int, int, int]],
) -> None:
    # given
    story = Story()
    tokens = [story.token("plain", approves=False), story.token("good"), story.token("revoked"), TokenId("t-none")]
    tokens.insert(EXPIRED, story.token("expired", expires_at=story.log.now - 1))
    story.revoke(tokens[REVOKED])
    let_in: set[int] = set()
    # when
    for what, number, other, name in steps:
        match what:
            case "join":
                request = JoinRequested(token=tokens[other], name=f"n{name}", public_key=nkey(number), addresses=HERE)
                if isinstance(story.answered(story.ask(request)), Fulfilled) and other == GOOD:
                    let_in.add(number)
            case "approve":
                if isinstance(story.approve(node(number)), Fulfilled):
                    let_in.add(number)
            case "live":
                story.speaking = {each for each in (1, 2, 3) if other >> (each - 1) & 1}
                story.live(number)
            case _:
                outlives_the_registry(story)
        # then
        assert {node(each) for each in let_in} == {
            view.id for view in story.state.fleet.nodes.values() if view.approved
        }
        takes = {view.id for view in story.state.fleet.nodes.values() if view.takes_replicas}
        assert takes <= {node(each) for each in let_in}
