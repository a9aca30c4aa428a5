"""What nodes said last counts for a while, and is said in words."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.ids import NodeId, ReplicaId
from weft_contracts.signals import FetchSaid, InstallSaid, LoadSaid, MemorySaid, NodeProgress
from weft_gateway.domain.progress_board import COUNTS_S, ProgressBoard
from weft_gateway.domain.progress_shapes import fetch_shape, install_shape, load_shape

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


@pytest.mark.parametrize(
    ("total", "text"),
    [
        (1, "0 of 1 B"),
        (999, "0 of 999 B"),
        (1000, "0.0 of 1.0 KiB"),
        (99 * GIB, "0.0 of 99.0 GiB"),
        (100 * GIB, "0 of 100 GiB"),
        (2 << 40, "0.0 of 2.0 TiB"),
        (2000 << 40, "0 of 2000 TiB"),
    ],
)
def test_an_installs_size_is_said_in_one_unit_with_three_digits(total: int, text: str) -> None:
    assert f"fetching packages, {text}" == install_shape(installing(phase="fetching", total=total))["about"]


def test_an_install_has_all_that_its_node_said_of_it() -> None:
    said = installing(phase="fetching", package="torch", fetched=GIB, total=2 * GIB, fetching_s=8.0, since_s=9.0)
    assert {
        "engine": "e",
        "version": "1",
        "vendor": "cpu",
        "phase": "fetching",
        "package": "torch",
        "fetched": GIB,
        "total": 2 * GIB,
        "left_s": 8.0,
        "since_s": 9.0,
        "overdue": False,
        "about": "fetching torch, 1.0 of 2.0 GiB, about 10 s left",
    } == install_shape(said)
    # and no estimate where nothing is fetched any more
    placing = said.model_copy(update={"phase": "placing", "package": ""})
    assert (None, None) == (install_shape(placing)["left_s"], install_shape(placing)["package"])


def test_an_overdue_install_says_that_it_goes_on() -> None:
    shown = install_shape(installing(overdue=True, since_s=961.0))
    assert (True, "still installing after 16 min: choosing packages") == (shown["overdue"], shown["about"])


def test_a_load_is_said_in_words() -> None:
    half = LoadSaid(replica=ReplicaId("m-1"), taken=3 * GIB, total=12 * GIB, loading_s=10.0)
    assert "loading weights, 3.0 of 12.0 GiB, about 30 s left" == load_shape(ONE, half)["about"]
    whole = half.model_copy(update={"taken": 12 * GIB})
    assert ("weights loaded, starting", None) == (load_shape(ONE, whole)["about"], load_shape(ONE, whole)["left_s"])


def fetching(**fields: Any) -> FetchSaid:
    given = {"replica": "m-1", "source": "hf:o/r", "phase": "fetching", "fetched": 945 * 10**6, "total": 21 * 10**8}
    return FetchSaid.model_validate(given | {"rate": 38.5e6, "fetching_s": 24.0} | fields)


def test_a_fetch_is_said_in_words_with_its_rate_and_what_is_left() -> None:
    shown = fetch_shape(ONE, fetching(file="m.gguf"))
    assert "fetching 45 % of 2.1 GB, 38 MB/s, about 30 s left" == shown["about"]
    assert (ONE, "hf:o/r", "m.gguf", 945 * 10**6) == tuple(shown[k] for k in ("node", "source", "file", "fetched"))
    # and nothing is made up where nothing is known
    assert "fetching 45 % of 2.1 GB" == fetch_shape(ONE, fetching(rate=0.0))["about"]
    assert "fetching 0 % of 512 B" == fetch_shape(ONE, fetching(fetched=0, total=512, fetching_s=1.0))["about"]
    assert (None, None) == tuple(fetch_shape(ONE, fetching(fetching_s=1.0))[k] for k in ("rate", "left_s"))
    assert "fetching 100 % of 2.1 GB, 38 MB/s" == fetch_shape(ONE, fetching(fetched=21 * 10**8))["about"]
    # and before and after there are words, too
    assert "other models are fetched first" == fetch_shape(ONE, fetching(phase="waiting"))["about"]
    assert "files fetched, putting them in place" == fetch_shape(ONE, fetching(phase="placing"))["about"]


def test_a_fetch_has_all_that_its_node_said_of_it() -> None:
    assert {
        "node": ONE,
        "phase": "fetching",
        "source": "hf:o/r",
        "file": None,
        "fetched": 995,
        "total": 1000,
        "rate": 1.0,
        "left_s": 5.0,
        "about": "fetching 99 % of 1.0 kB, 1 B/s, a few seconds left",
    } == fetch_shape(ONE, fetching(fetched=995, total=1000, rate=1.0, fetching_s=2.0))
    assert "fetching 0 % of 0 B" == fetch_shape(ONE, fetching(fetched=0, total=0, rate=0.0))["about"]


@given(st.integers(0, 1 << 50), st.integers(0, 1 << 50), st.floats(0, 1e15))
def test_no_figures_break_the_words_of_a_fetch(fetched: int, total: int, rate: float) -> None:
    shown = fetch_shape(ONE, fetching(fetched=fetched, total=total, rate=rate))
    assert "-" not in shown["about"]
    assert shown["left_s"] is None or shown["left_s"] > 0


@given(st.integers(0, 1 << 50), st.integers(0, 1 << 50), st.floats(0, 1e6))
def test_no_figures_break_the_words(fetched: int, total: int, seconds: float) -> None:
    shown = install_shape(installing(phase="fetching", fetched=fetched, total=total, fetching_s=seconds))
    assert "-" not in shown["about"]
    assert shown["left_s"] is None or shown["left_s"] > 0
