"""A metadata-cache that goes on from a snapshot knows and fetches what one does that folded the whole log."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.commit import Recorded
from weft_metadata_cache.domain.due_fetches import Limits, State, due_fetches
from weft_testing.histories import check_snapshots, histories


def fold(state: State, commits: Sequence[Recorded]) -> None:
    for commit in commits:
        state.apply(commit)


@given(histories(), st.floats(0, 1))
def test_a_cache_from_a_snapshot_wants_what_one_does_that_folded_the_whole_log(
    history: list[Recorded], part: float
) -> None:
    whole, after = check_snapshots(State, fold, history, int(part * len(history)), State.on_restored)
    assert due_fetches(whole, 1_700_000_500.0, Limits()) == due_fetches(after, 1_700_000_500.0, Limits())
