"""Who is alive: healthy, unhealthy, offline, and the brake."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts import subjects
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.mesh import BrakeLifted, BrakeSet
from weft_contracts.facts.node import Draining, Healthy, Joined, Rejoined, Removed, Unhealthy, WentOffline
from weft_contracts.facts.request import BrakeLiftRequested, Fulfilled, Rejected
from weft_registry.domain.failure_detector import Observations
from weft_registry.domain.state import RegistryState

from .registry_story import Story, assigned, node


@pytest.fixture
def three() -> Story:
    story = Story()
    story.nodes(3)
    return story


def kinds(facts: Sequence[Fact]) -> list[str]:
    return [type(fact).__name__ for fact in facts]


# one node


def test_an_approved_node_turns_healthy_at_its_first_lease() -> None:
    # given
    story = Story()
    story.join(1, story.token())
    assert [] == story.live(5)
    # when
    story.speaking = {1}
    # then, though the start grace still runs
    assert ["Healthy"] == kinds(story.live(3))
    assert "healthy" == story.view(1).state


def test_a_node_that_speaks_is_marked_once(three: Story) -> None:
    assert [] == three.live(120)


def test_a_silent_node_is_unhealthy_after_4_s_and_offline_after_7_s(three: Story) -> None:
    # given
    three.speaking.remove(1)
    # when
    facts = three.live(12)
    # then
    assert ["Unhealthy", "WentOffline"] == kinds(facts)
    unhealthy, offline = facts
    assert isinstance(unhealthy, Unhealthy)
    assert isinstance(offline, WentOffline)
    assert 4.0 <= unhealthy.silent_for < 5.0
    assert 7.0 <= offline.silent_for < 8.0
    # and nothing more is said of it
    assert [] == three.live(60)


@pytest.mark.parametrize(
    ("silent", "unbraked", "said"),
    [
        (7.0, 7.0, ["WentOffline"]),
        (6.9, 7.0, ["Unhealthy"]),
        (7.0, 6.9, ["Unhealthy"]),
        (4.0, 7.0, ["Unhealthy"]),
        (3.9, 7.0, []),
    ],
)
def test_a_node_is_lost_from_the_seventh_second_of_its_silence_and_of_the_time_since_the_brake(
    three: Story, silent: float, unbraked: float, said: list[str]
) -> None:
    others = frozenset({node(2), node(3)})
    observed = Observations(others, {node(1): silent}, others | {node(1)}, unbraked)
    decided = [fact for each in three.decided(observed) for commit in each.commits for fact in commit.facts]
    assert said == kinds(decided)


def test_a_node_that_is_heard_again_is_healthy_again(three: Story) -> None:
    three.speaking.remove(1)
    three.live(12)
    three.speaking.add(1)
    assert ["Healthy"] == kinds(three.live(3))


def test_a_node_silent_from_the_registrys_start_on_is_offline_only_after_the_grace(three: Story) -> None:
    """A new registry over the same log, which still says healthy."""
    # given
    again = Story()
    for commit in three.log.commits[again.log.head :]:
        again.log.given(commit.aggregate, *commit.facts)
    again.speaking = {2, 3}
    # then
    assert [] == again.live(29)
    assert ["WentOffline"] == kinds(again.live(20))
    assert ["offline", "healthy", "healthy"] == again.states([1, 2, 3])


def test_nothing_is_said_of_a_removed_node(three: Story) -> None:
    three.log.given(subjects.node(node(1)), Removed(why="test"))
    three.speaking.remove(1)
    assert [] == three.live(30)


def test_a_draining_node_is_watched_as_any_other(three: Story) -> None:
    three.log.given(subjects.node(node(1)), assigned(node(1)), Draining(why="admin", deadline_s=60))
    three.speaking.remove(1)
    assert ["Unhealthy", "WentOffline"] == kinds(three.live(12))


# the log away


@pytest.mark.parametrize("seconds", [1, 2, 3, 4, 5, 6, 8, 12, 90])
def test_the_log_unreachable_marks_nobody_however_long(three: Story, seconds: int) -> None:
    # when nothing comes through, not even what is decided meanwhile
    three.live(seconds, log_there=False)
    # then
    assert [] == three.in_vain
    assert [] == three.live(60)


def test_who_died_while_the_log_was_away_is_found_afterwards(three: Story) -> None:
    three.live(45, log_there=False)
    three.speaking.remove(1)
    three.live(45, log_there=False)
    assert "WentOffline" in kinds(three.live(25))


# the brake


@pytest.mark.parametrize(
    ("of", "silent", "braked"),
    [(2, 1, False), (3, 1, False), (2, 2, True), (3, 2, True), (6, 2, True), (7, 2, False), (9, 3, True)],
)
def test_two_and_a_third_at_once_set_the_brake(of: int, silent: int, braked: bool) -> None:
    # given
    story = Story()
    story.nodes(of)
    # when
    story.speaking -= set(range(1, silent + 1))
    facts = story.live(15)
    # then
    assert (braked, not braked) == ("BrakeSet" in kinds(facts), "WentOffline" in kinds(facts))
    assert {"unhealthy" if braked else "offline"} == set(story.states(range(1, silent + 1)))


def test_the_brake_is_set_once_and_says_how_many(three: Story) -> None:
    three.speaking = {3}
    facts = three.live(120)
    assert [BrakeSet(silent=2, healthy_before=3)] == [fact for fact in facts if isinstance(fact, BrakeSet)]
    assert ["unhealthy", "unhealthy", "healthy"] == three.states([1, 2, 3])


def test_while_the_brake_holds_nobody_is_lost_however_long_ago_it_was_seen(three: Story) -> None:
    three.speaking = {3}
    three.live(30)
    assert three.state.fleet.brake is not None
    three.speaking = set()
    three.live(120)

    everybody = [node(number) for number in (1, 2, 3)]
    seen = three.detector.observations(everybody, three.clock, braked=True)

    assert [] == three.settle(replace(seen, unbraked=float("inf")))


def test_the_return_of_the_leases_lifts_the_brake(three: Story) -> None:
    # given
    three.speaking = {3}
    three.live(90)
    # when one of two returns, one silent node of three is left
    three.speaking.add(2)
    facts = three.live(12)
    # then it may be replaced
    assert [BrakeLifted(why="the leases came back")] == [fact for fact in facts if isinstance(fact, BrakeLifted)]
    assert ["offline", "healthy", "healthy"] == three.states([1, 2, 3])


def test_a_second_death_within_the_minute_sets_the_brake_and_keeps_it(three: Story) -> None:
    """The first one is offline already: it must not count for setting and not for lifting."""
    # given
    three.speaking.remove(1)
    three.live(20)
    # when
    three.speaking.remove(2)
    facts = three.live(120)
    # then
    assert ["BrakeSet", "Unhealthy"] == kinds(facts)


def test_a_second_death_after_more_than_a_minute_is_a_single_one(three: Story) -> None:
    three.speaking.remove(1)
    three.live(80)
    three.speaking.remove(2)
    assert ["Unhealthy", "WentOffline"] == kinds(three.live(30))


def test_nodes_removed_by_an_admin_are_not_waited_for(three: Story) -> None:
    # given
    three.speaking = {3}
    three.live(90)
    # when
    for number in (1, 2):
        three.log.given(subjects.node(node(number)), Removed(why="test"))
    # then
    assert ["BrakeLifted"] == kinds(three.live(2))


def test_new_nodes_in_the_place_of_the_lost_lift_the_brake(three: Story) -> None:
    # given
    three.speaking = {3}
    three.live(90)
    # when
    token = three.token("more")
    for number in (4, 5):
        three.join(number, token)
    three.speaking |= {4, 5}
    facts = three.live(20)
    # then those that never came back are replaced
    assert "BrakeLifted" in kinds(facts)
    assert ["offline", "offline", "healthy"] == three.states([1, 2, 3])


def test_a_whole_mesh_that_falls_silent_is_left_as_it_is(three: Story) -> None:
    three.speaking = set()
    three.live(300)
    assert ["unhealthy"] * 3 == three.states([1, 2, 3])
    # and when it returns, nothing was lost
    three.speaking = {1, 2, 3}
    assert ["BrakeLifted", *["Healthy"] * 3] == sorted(kinds(three.live(5)))
    assert not any(isinstance(fact, WentOffline) for fact in three.log.facts())


# whatever is heard

_NODES = [node(n) for n in range(1, 6)]
_SOME = st.frozensets(st.sampled_from(_NODES))


@st.composite
def any_observations(draw: st.DrawFn) -> Observations:
    """What may be heard: who is alive has not been silent for 4 s."""
    alive = draw(_SOME)
    silence = draw(st.dictionaries(st.sampled_from(_NODES), st.floats(0, 20)))
    return Observations(
        alive=alive,
        silence={id: min(s, 3.9) if id in alive else s for id, s in silence.items()},
        healthy_before=draw(_SOME),
        unbraked=draw(st.sampled_from([0.0, 60.0])),
    )


@settings(max_examples=100, deadline=None)
@given(st.lists(any_observations(), max_size=6), st.integers(1, 5))
def test_whatever_is_heard_the_registry_comes_to_rest(steps: list[Observations], count: int) -> None:
    """`settle` fails where decisions never end: a brake set and lifted for ever would fill the log."""
    story = Story()
    token = story.token()
    for number in range(1, count + 1):
        story.join(number, token)
    for heard in steps:
        facts = story.settle(heard)
        # the brake moves at most once, and each node at most once, on the same observations
        assert 1 >= sum(isinstance(fact, BrakeSet | BrakeLifted) for fact in facts)
        assert count >= sum(isinstance(fact, Healthy | Unhealthy | WentOffline) for fact in facts)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sets(st.integers(1, 4)), st.booleans()), max_size=4))
def test_replayed_from_the_log_the_state_is_the_same(steps: list[tuple[set[int], bool]]) -> None:
    # given
    story = Story()
    story.nodes(4)
    for speaking, there in steps:
        story.speaking = speaking
        story.live(9, log_there=there)
    # when
    again = RegistryState()
    for commit in story.log.commits:
        again.apply(commit)
    # then
    assert story.state == again
    assert not any(isinstance(fact, Rejoined) for fact in story.log.facts())
    assert 4 == sum(isinstance(fact, Joined) for fact in story.log.facts())


# an operator lifts the brake


def test_an_operator_lifts_the_brake_and_who_is_silent_is_lost(three: Story) -> None:
    # given two of three silent
    three.speaking = {3}
    three.live(10)
    assert three.state.fleet.brake is not None
    # when
    assert isinstance(three.answered(three.ask(BrakeLiftRequested(why="the rack burnt"))), Fulfilled)
    # then it is not set again, also while they were healthy within the last minute
    facts = three.live(30)
    assert ["WentOffline", "WentOffline"] == kinds(facts)
    assert ["offline", "offline", "healthy"] == three.states([1, 2, 3])
    lifted = [fact for fact in three.log.facts() if isinstance(fact, BrakeLifted)]
    assert [BrakeLifted(why="the rack burnt", by="gateway")] == lifted


def test_who_returns_after_a_lifted_brake_counts_again() -> None:
    # given
    story = Story()
    story.nodes(4)
    story.speaking = {3, 4}
    story.live(10)
    story.answered(story.ask(BrakeLiftRequested()))
    story.speaking = {1, 2, 3, 4}
    story.live(20)
    assert ["healthy"] * 4 == story.states([1, 2, 3, 4])
    assert set() == story.state.written_off
    # when they fall silent once more
    story.speaking = {3, 4}
    # then the brake is set once more
    assert "BrakeSet" in kinds(story.live(15))


def test_a_brake_that_is_not_set_cant_be_lifted(three: Story) -> None:
    outcome = three.answered(three.ask(BrakeLiftRequested()))
    assert isinstance(outcome, Rejected)
    assert 409 == outcome.status
