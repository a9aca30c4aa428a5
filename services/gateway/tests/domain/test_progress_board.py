"""What nodes said last counts for a while, and is said in words."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.ids import NodeId, ReplicaId
from weft_contracts.signals import InstallSaid, LoadSaid, MemorySaid, NodeProgress
from weft_gateway.domain.progress_board import COUNTS_S, ProgressBoard
from weft_gateway.domain.progress_shapes import install_shape, load_shape

ONE, TWO = NodeId("n-1"), NodeId("n-2")
GIB = 1 << 30
MEMORY = (MemorySaid(replica=ReplicaId("m-1"), device=0, used=7),)


def says(node: NodeId, *installs: InstallSaid, memory: tuple[MemorySaid, ...] = ()) -> NodeProgress:
    return NodeProgress(node=node, installs=installs, memory=memory)


def installing(**fields: Any) -> InstallSaid:
    return InstallSaid.model_validate({"engine": "e", "version": "1", "vendor": "cpu", "phase": "resolving"} | fields)


def test_what_a_node_said_is_gone_when_it_is_old_or_when_it_says_nothing_more() -> None:
    board = ProgressBoard()
    board.heard(ONE, says(ONE, installing()), 100.0)
    board.heard(TWO, says(TWO, memory=MEMORY), 101.0)
    # when the first falls silent, and the other has ended what it did
    board.forget_old(100.0 + COUNTS_S)
    assert [ONE, TWO] == board.nodes()
    board.heard(TWO, says(TWO), 101.0 + COUNTS_S)
    board.forget_old(101.0 + COUNTS_S)
    # then neither is shown
    assert [] == board.nodes()
    assert (None, None) == (board.of(ONE), board.of(TWO))


steps = st.lists(
    st.tuples(
        st.sampled_from([ONE, TWO]),
        st.sampled_from(["nothing", "resolving", "checking"]),
        st.floats(0, COUNTS_S),
    ),
    max_size=20,
)


@given(steps)
def test_whatever_is_shown_was_said_lately_and_another_thing_has_another_version(steps: list[Any]) -> None:
    board, now, said = ProgressBoard(), 0.0, dict[NodeId, tuple[float, NodeProgress]]()
    for node, phase, passed in steps:
        now += passed
        shown, version = {each: board.of(each) for each in (ONE, TWO)}, board.version
        progress = says(node) if phase == "nothing" else says(node, installing(phase=phase))
        said[node] = now, progress
        board.heard(node, progress, now)
        board.forget_old(now)
        for each in (ONE, TWO):
            at, last = said.get(each, (float("-inf"), says(each)))
            fresh = last if last.moves and at >= now - COUNTS_S else None
            assert fresh == board.of(each)
        assert (shown == {each: board.of(each) for each in (ONE, TWO)}) <= (version == board.version)


def test_an_install_is_said_in_words_with_an_estimate_where_there_is_one() -> None:
    fetching = {"phase": "fetching", "package": "torch", "fetched": GIB // 2, "total": 2 * GIB, "fetching_s": 40.0}
    shown = install_shape(installing(**fetching))
    assert "fetching torch, 0.5 of 2.0 GiB, about 2 min left" == shown["about"]
    assert (120.0, GIB // 2, 2 * GIB) == (shown["left_s"], shown["fetched"], shown["total"])
    # and nothing is made up where nothing is known
    shown = install_shape(installing(phase="fetching", fetching_s=40.0))
    assert "fetching packages" == shown["about"]
    assert (None, None, None) == (shown["left_s"], shown["fetched"], shown["total"])
    assert "waits for other installs" == install_shape(installing(phase="queued"))["about"]
    assert "trying it out" == install_shape(installing(phase="checking", fetched=5, total=5))["about"]


def test_an_overdue_install_says_that_it_goes_on() -> None:
    shown = install_shape(installing(overdue=True, since_s=961.0))
    assert (True, "still installing after 16 min: choosing packages") == (shown["overdue"], shown["about"])


def test_a_load_is_said_in_words() -> None:
    half = LoadSaid(replica=ReplicaId("m-1"), taken=3 * GIB, total=12 * GIB, loading_s=10.0)
    assert "loading weights, 3.0 of 12.0 GiB, about 30 s left" == load_shape(ONE, half)["about"]
    whole = half.model_copy(update={"taken": 12 * GIB})
    assert ("weights loaded, starting", None) == (load_shape(ONE, whole)["about"], load_shape(ONE, whole)["left_s"])


@given(st.integers(0, 1 << 50), st.integers(0, 1 << 50), st.floats(0, 1e6))
def test_no_figures_break_the_words(fetched: int, total: int, seconds: float) -> None:
    shown = install_shape(installing(phase="fetching", fetched=fetched, total=total, fetching_s=seconds))
    assert "-" not in shown["about"]
    assert shown["left_s"] is None or shown["left_s"] > 0
