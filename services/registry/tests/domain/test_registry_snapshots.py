"""A registry that goes on from a snapshot knows what one does that folded the whole log."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.commit import Recorded
from weft_registry.domain.answer_request import answer
from weft_registry.domain.state import RegistryState
from weft_testing.histories import check_snapshots, histories


def fold(state: RegistryState, commits: Sequence[Recorded]) -> None:
    for commit in commits:
        state.apply(commit)


@given(histories(60), st.floats(0, 1))
def test_a_registry_from_a_snapshot_answers_as_one_that_folded_the_whole_log(
    history: list[Recorded], part: float
) -> None:
    whole, after = check_snapshots(RegistryState, fold, history, int(part * len(history)))
    said, again = (
        [answer(state, each, 1_700_000_500.0) for each in state.requests.waiting.values()] for state in (whole, after)
    )
    assert said == again
