"""A reconciler that goes on from a snapshot knows and decides what one does that folded the whole log."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts.commit import Recorded
from weft_reconciler.domain.decide import decide
from weft_reconciler.domain.decision_time import DecisionClock, Timeouts
from weft_reconciler.domain.state import State
from weft_testing.histories import check_snapshots, histories

from .story import Story
from .test_reconciler_fixed_point import NODES, happen, steps


def fold(state: State, commits: Sequence[Recorded]) -> None:
    state.fold(commits)


@given(histories(), st.floats(0, 1))
def test_a_reconciler_from_a_snapshot_knows_what_the_whole_log_says(history: list[Recorded], part: float) -> None:
    check_snapshots(State, fold, history, int(part * len(history)), State.on_restored)


@given(st.lists(steps, max_size=30), st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_a_reconciler_from_a_snapshot_decides_as_one_that_folded_the_whole_log(
    happenings: list[tuple[str, int]], part: float
) -> None:
    story = Story()
    story.node(*NODES)
    for what, which in happenings:
        happen(story, what, which)
    history = story.log.commits
    whole, after = check_snapshots(State, fold, history, int(part * len(history)), State.on_restored)
    now = story.log.now
    one, other = (DecisionClock(Timeouts(deploy_wait=30, return_grace=5, failure_memory=600)) for _ in range(2))
    said, again = decide(whole, one.tick(now)), decide(after, other.tick(now))
    assert sorted(map(repr, said)) == sorted(map(repr, again))
