"""How many may ask to join, and for how long they may wait: by token and in all."""

import pytest
from weft_contracts import subjects
from weft_contracts.commit import Cause
from weft_contracts.facts.name import Claimed, Released
from weft_contracts.facts.node import Approved, Expired, Joined
from weft_contracts.facts.request import Fulfilled, JoinRequested, Rejected, RejectionRequested
from weft_contracts.facts.token import Bound
from weft_contracts.ids import CorrelationId, NodeId, token_hash, token_id
from weft_fleet import JoinLimits
from weft_registry.domain.founding import BootstrapToken
from weft_registry.domain.names import claimed

from .registry_story import HERE, Story, nkey, node

LIMITS = JoinLimits(in_all=4, per_token=2, waits_s=600.0)
MINUTE_S = 60.0


@pytest.fixture
def story() -> Story:
    return Story(limits=LIMITS)


def status(outcome: object) -> int:
    return outcome.status if isinstance(outcome, Rejected) else 0


def waiting(story: Story) -> list[NodeId]:
    return [view.id for view in story.state.fleet.nodes.values() if not (view.approved or view.removed)]


# how many wait


def test_one_token_lets_so_many_nodes_wait_at_once_and_no_more(story: Story) -> None:
    id = story.token(approves=False)
    assert [0, 0] == [status(story.join(number, id)) for number in (1, 2)]
    story.log.now += MINUTE_S
    assert 429 == status(story.join(3, id))
    assert [node(1), node(2)] == waiting(story)
    # one that waits may come again
    assert 0 == status(story.join(1, id))
    # and when one is approved or rejected another may wait
    story.approve(node(1))
    story.answered(story.ask(RejectionRequested(node=node(2), why="not ours")))
    story.log.now += MINUTE_S
    assert [0, 0] == [status(story.join(number, id)) for number in (3, 4)]


def test_a_tokens_own_number_goes_over_the_setting(story: Story) -> None:
    id = story.token(approves=False, most_waiting=3)
    assert [0, 0, 0, 429] == [status(story.join(number, id)) for number in range(1, 5)]


def test_of_many_that_ask_at_once_no_more_are_let_in(story: Story) -> None:
    # given more requests than gateways should have appended, each of a token that would allow it
    for number in range(1, 9):
        id = story.token(f"t{number % 4}", approves=False, most_waiting=8)
        story.ask(JoinRequested(token=id, name=f"n{number}", public_key=nkey(number), addresses=HERE))
    story.log.now += MINUTE_S
    story.settle()
    assert LIMITS.in_all == len(waiting(story))
    assert {} == story.state.requests.waiting


def test_with_a_token_that_approves_nobody_waits_and_yet_so_many_may_come_in_a_minute(story: Story) -> None:
    id = story.token()
    assert [0, 0, 429] == [status(story.join(number, id)) for number in (1, 2, 3)]
    # who is approved is not counted
    assert [0, 0] == [status(story.join(number, id)) for number in (1, 2)]
    # and the next minute others may
    story.log.now += MINUTE_S
    assert 0 == status(story.join(3, id))


# how long


def test_who_is_not_approved_in_time_is_out_with_its_name_and_may_ask_again(story: Story) -> None:
    # given
    id = story.token(approves=False)
    story.join(1, id)
    story.log.now += LIMITS.waits_s - 1
    assert [] == story.settle()
    story.join(1, id)
    # when
    story.log.now += 1
    # then it is out, though it came again meanwhile
    assert [Expired, Released] == [type(fact) for fact in story.settle()]
    assert node(1) not in story.state.fleet.nodes
    assert [] == story.settle()
    # and another may have its name
    assert 0 == status(story.join(2, id, name="node-1"))
    # and the same key joins anew
    story.log.now += MINUTE_S
    assert 0 == status(story.join(1, id, name="again"))
    assert ("again", "pending") == (story.view(1).name, story.view(1).state)
    assert {} == story.state.expired
    assert [Joined, Joined] == [type(f) for f in story.log.facts(subjects.node(node(1))) if isinstance(f, Joined)]


def test_who_was_approved_or_rejected_never_expires(story: Story) -> None:
    id = story.token(approves=False)
    for number in (1, 2):
        story.join(number, id)
    story.approve(node(1))
    story.answered(story.ask(RejectionRequested(node=node(2), why="not ours")))
    story.log.now += 10 * LIMITS.waits_s
    assert [] == [fact for fact in story.settle() if isinstance(fact, Expired)]


def test_many_expire_in_a_few_rounds(story: Story) -> None:
    story.limits = JoinLimits(waits_s=600.0, per_token=200)
    id = story.token(approves=False)
    for number in range(1, 151):
        story.ask(JoinRequested(token=id, name=f"n{number}", public_key=nkey(number), addresses=HERE))
    story.settle()
    story.log.now += 600.0
    assert 150 == sum(isinstance(fact, Expired) for fact in story.settle())
    assert {} == story.state.registrations.waiting


# once


@pytest.mark.parametrize("approves", [True, False])
def test_a_registration_counts_once_and_an_older_one_never_again(story: Story, *, approves: bool) -> None:
    # given a node that moved
    id = story.token(approves=approves, most_waiting=4)
    there = HERE.model_copy(update={"host": "10.0.0.2"})
    assert 0 == status(story.join(1, id, signed_at=100.0))
    assert 0 == status(story.join(1, id, signed_at=101.0, addresses=there))
    # when what it sent before is sent again
    replays = [story.join(1, id, signed_at=100.0), story.join(1, id, signed_at=101.0), story.join(1, id)]
    # then it stays where it is
    assert [409, 409, 409] == [status(each) for each in replays]
    assert (there, 101.0) == (story.view(1).addresses, story.view(1).signed_at)


def test_what_one_sent_before_it_expired_does_not_bring_it_back(story: Story) -> None:
    id = story.token(approves=False)
    story.join(1, id, signed_at=100.0)
    story.log.now += LIMITS.waits_s
    story.settle()
    assert 409 == status(story.join(1, id, signed_at=100.0))
    assert 0 == status(story.join(1, id, signed_at=100.5))


# names


def test_a_name_that_differs_by_case_alone_is_taken_and_free_again_with_its_node(story: Story) -> None:
    id = story.token(most_waiting=9)
    story.join(1, id, name="Rack-A")
    outcome = story.join(2, id, name="rack-a")
    assert isinstance(outcome, Rejected)
    assert (409, True) == (outcome.status, "'Rack-A'" in outcome.reason and "case" in outcome.reason)
    story.log.now += MINUTE_S
    story.remove(node(1))
    assert 0 == status(story.join(2, id, name="rack-a"))
    assert 409 == status(story.join(3, id, name="RACK-A"))


def test_two_that_ask_at_once_for_names_that_differ_by_case_get_one_yes(story: Story) -> None:
    id = story.token(most_waiting=9)
    for number, name in ((1, "Rack"), (2, "rACK")):
        story.ask(JoinRequested(token=id, name=name, public_key=nkey(number), addresses=HERE))
    story.settle()
    assert [node(1)] == list(story.state.fleet.nodes)


def test_a_name_that_is_taken_is_told_apart_from_one_of_other_case(story: Story) -> None:
    id = story.token(most_waiting=9)
    story.join(1, id, name="rack")
    same, other = story.join(2, id, name="rack"), story.join(3, id, name="Rack")
    assert isinstance(same, Rejected)
    assert isinstance(other, Rejected)
    assert "another node bears the name 'rack'" in same.reason
    assert "differs from 'Rack' by the case of letters alone" in other.reason


def test_a_nodes_own_name_is_not_claimed_twice(story: Story) -> None:
    story.join(1, story.token(most_waiting=9), name="rack")
    assert () == claimed(story.state, "rack", node(1), Cause(CorrelationId("c")))


def test_a_name_claimed_before_case_was_passed_over_is_kept_and_freed(story: Story) -> None:
    # given a node of an earlier version
    id = story.token(most_waiting=9)
    old = Joined(name="Old", public_key=nkey(1), token=id, addresses=HERE)
    story.log.given(subjects.node(node(1)), old, Approved(by=id))
    story.log.given(subjects.name("node", "Old"), Claimed(name="Old", owner=node(1)))
    # then
    assert 409 == status(story.join(2, id, name="old"))
    assert 0 == status(story.join(1, id, name="Old"))
    story.remove(node(1))
    assert Released() == story.log.facts(subjects.name("node", "Old"))[-1]
    assert [0, 409] == [status(story.join(number, id, name="Old")) for number in (2, 3)]


@pytest.mark.parametrize("written", [str.lower, str.upper])
def test_a_name_is_not_written_as_another_nodes_id(story: Story, written: type[str]) -> None:
    id = story.token(most_waiting=9)
    story.join(1, id)
    assert 400 == status(story.join(2, id, name=written(node(1))))
    assert 400 == status(story.join(2, id, name=written(node(3))))
    story.log.now += MINUTE_S
    assert 0 == status(story.join(2, id, name="n-of-another-form"))
    assert 0 == status(story.join(4, id, name=node(4)))


@pytest.mark.parametrize("label", ["node.name", "engine.llama.cpp", "gpu.vendor", "gpu.vram"])
def test_a_worker_gives_itself_no_label_that_selectors_believe(story: Story, label: str) -> None:
    outcome = story.join(1, story.token(), labels={"zone": "a", label: "x"})
    assert isinstance(outcome, Rejected)
    assert (400, True) == (outcome.status, label in outcome.reason)


# the launcher's own token


def test_the_launchers_token_serves_its_own_nodes_alone_and_others_when_these_change(story: Story) -> None:
    # given a mesh whose launcher's token was for everybody
    bare = BootstrapToken(token_id("x"), token_hash("x"))
    story.log.take(story.decided(token=bare))
    # when it is told its nodes
    bound = BootstrapToken(bare.id, bare.hash, (nkey(1),))
    (decision,) = story.decided(token=bound)
    story.log.take([decision])
    assert (Bound(keys=(nkey(1),)),) == decision.commits[0].facts
    # then others can't join by it
    assert [] == story.decided(token=bound)
    story.log.now += MINUTE_S
    assert 0 == status(story.join(1, bare.id))
    assert 401 == status(story.join(2, bare.id))
    # until they are its nodes
    story.log.take(story.decided(token=BootstrapToken(bare.id, bare.hash, (nkey(2),))))
    story.log.now += MINUTE_S
    assert isinstance(story.join(2, bare.id), Fulfilled)
    assert 401 == status(story.join(3, bare.id))


def test_a_new_launchers_token_is_bound_in_the_commit_that_makes_it(story: Story) -> None:
    story.log.take(story.decided(token=BootstrapToken(token_id("x"), token_hash("x"), (nkey(1),))))
    assert ["created", "bound"] == [fact.type for fact in story.log.facts(subjects.token(token_id("x")))]
    assert 401 == status(story.join(2, token_id("x")))
