"""A fleet that goes on from a snapshot is the fleet of the whole log."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.commit import Recorded
from weft_fleet import Fleet
from weft_testing.histories import check_snapshots, histories


def fold(fleet: Fleet, commits: Sequence[Recorded]) -> None:
    for commit in commits:
        fleet.apply(commit)


@given(histories(60), st.floats(0, 1))
def test_a_fleet_from_a_snapshot_and_the_tail_is_that_of_the_whole_log(history: list[Recorded], part: float) -> None:
    whole, after = check_snapshots(Fleet, fold, history, int(part * len(history)))
    assert whole.digest() == after.digest()
