"""A round: decisions that can be appended side by side, since none touches what another one touches."""

from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.commit import Cause, Commit, Decision, Guard
from weft_contracts.facts.mesh import BrakeLifted
from weft_contracts.ids import CorrelationId
from weft_contracts.subjects import Aggregate
from weft_requests import Round

CAUSE = Cause(CorrelationId("c-1"))


def on(key: str) -> Aggregate:
    return Aggregate("node", key)


def write(key: str, guarded_by: str | None = None) -> Commit:
    return Commit(on(key), (BrakeLifted(why=""),), Guard(on(guarded_by or key), 0), CAUSE)


def decision(*commits: Commit) -> Decision:
    return Decision(commits, "a test")


def test_decisions_on_different_aggregates_are_of_one_round() -> None:
    round = Round()
    assert round.add(decision(write("a"), write("b")))
    assert round.add(decision(write("c")))
    assert 2 == len(round.decisions)


def test_a_decision_that_writes_what_an_earlier_one_writes_is_left_for_the_next_round() -> None:
    round = Round()
    assert round.add(decision(write("a"), write("b")))
    assert not round.add(decision(write("b"), write("c")))
    assert round.add(decision(write("c"))), "nothing of a decision that was left over is taken"


def test_a_decision_that_is_guarded_by_what_an_earlier_one_writes_is_left_for_the_next_round() -> None:
    round = Round()
    assert round.add(decision(write("a")))
    assert not round.add(decision(write("b", guarded_by="a")))
    assert round.add(decision(write("c", guarded_by="d")))
    assert not round.add(decision(write("d")))


def test_a_round_takes_so_many_decisions_at_most() -> None:
    round = Round(2)
    assert [True, True, False] == [round.add(decision(write(key))) for key in "abc"]


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=3, unique=True), max_size=12))
def test_the_first_of_those_that_overlap_is_taken_and_no_aggregate_twice(keys: list[list[str]]) -> None:
    # given
    round = Round()
    # when
    taken = [group for group in keys if round.add(decision(*(write(key) for key in group)))]
    # then
    written = [key for group in taken for key in group]
    assert len(set(written)) == len(written)
    assert taken[:1] == keys[:1]
    assert all(set(group) & set(written) for group in keys)
