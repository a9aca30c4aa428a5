"""A gateway that goes on from a snapshot remembers what one does that folded the whole log."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.commit import Recorded
from weft_gateway.projections.memory import Memory
from weft_gateway.projections.requests import Requests
from weft_testing.histories import MODELS, check_snapshots, histories


def fold(memory: Memory, commits: Sequence[Recorded]) -> None:
    memory.fold(commits)


@given(histories(60), st.floats(0, 1))
def test_a_gateway_from_a_snapshot_remembers_and_routes_as_one_that_folded_the_whole_log(
    history: list[Recorded], part: float
) -> None:
    cut = int(part * len(history))
    whole, after = check_snapshots(lambda: Memory(requests=Requests(kept=2)), fold, history, cut, Memory.on_restored)
    for model in MODELS:
        assert whole.directory.endpoints(model) == after.directory.endpoints(model)
    assert [*whole.requests.since(0)] == [*after.requests.since(0)]


def test_who_waits_for_a_change_is_woken_when_a_snapshot_is_restored() -> None:
    memory = Memory()
    before, waits = memory.directory.version, memory.directory.changed._next
    memory.on_restored()
    assert waits.is_set()
    assert before != memory.directory.version
