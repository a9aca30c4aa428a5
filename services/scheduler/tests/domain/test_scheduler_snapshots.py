"""A scheduler that goes on from a snapshot knows and decides what one does that folded the whole log."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.commit import Recorded
from weft_scheduler.domain.decide import decide
from weft_scheduler.domain.rules import Rules
from weft_scheduler.domain.state import State
from weft_testing.histories import check_snapshots, fill, histories, shape_of


def fold(state: State, commits: Sequence[Recorded]) -> None:
    state.fold(commits)


@given(histories(), st.floats(0, 1))
def test_a_scheduler_from_a_snapshot_decides_as_one_that_folded_the_whole_log(
    history: list[Recorded], part: float
) -> None:
    cut = int(part * len(history))
    whole, after = check_snapshots(State, fold, history, cut, State.on_restored)
    assert decide(whole, Rules(), 1_700_000_500.0, 1) == decide(after, Rules(), 1_700_000_500.0, 1)


@given(histories())
def test_what_was_looked_at_before_a_snapshot_is_looked_at_again_after_it(history: list[Recorded]) -> None:
    # given a scheduler that has decided, and whose decisions were lost
    state, after = State(), State()
    state.fold(history)
    said = decide(state, Rules(), 1_700_000_500.0, 1)
    # when another goes on from its snapshot
    fill(after, shape_of(State).copied(state))
    after.on_restored()
    # then it makes them again
    assert said == decide(after, Rules(), 1_700_000_500.0, 1)
