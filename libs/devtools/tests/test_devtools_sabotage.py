"""The sabotage tool, on a small tree of its own."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_client.failure import Exit, Failure
from weft_devtools import sabotage
from weft_devtools.sabotage import Sabotage

_CODE = "def double(n):\n    return 2 * n\n"
_STORY = """
import pytest
from thing import double

@pytest.mark.sabotage("{name}")
def test_twice_two_is_four():
    assert 4 == double(2)
"""

_CASES_STORY = """
import pytest
from thing import double

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.sabotage("halved"))])
def test_twice_n_is_more(n):
    assert n == 2, "this case is not asked for"
    assert 2 * n == double(n), "noticed"
"""


@pytest.fixture(autouse=True)
def no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all that is installed for pytest, the story needs nothing: to import it takes seconds."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with one member, one story and its patch."""
    root = tmp_path / "tree"
    (root / "libs" / "thing" / "src" / "thing").mkdir(parents=True)
    (root / "libs" / "thing" / "src" / "thing" / "__init__.py").write_text(_CODE)
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\nmarkers = ["sabotage(name): x"]\n')
    (root / ".gitignore").write_text("__pycache__/\n")  # of a file that changes within its second, that would be stale
    (root / "tests" / "integration" / "sabotage").mkdir(parents=True)
    _story(root, "halved")
    _patch(root, "halved", "    return n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


def _story(root: Path, name: str) -> None:
    (root / "tests" / "integration" / "test_thing.py").write_text(_STORY.format(name=name))


def _patch(root: Path, name: str, line: str, old: str = "    return 2 * n") -> None:
    path = "libs/thing/src/thing/__init__.py"
    text = f"--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,2 @@\n def double(n):\n-{old}\n+{line}\n"
    (root / "tests" / "integration" / "sabotage" / f"{name}.patch").write_text(text)


def test_a_story_that_notices_is_fine_and_the_tree_is_untouched(tree: Path) -> None:
    [found] = sabotage.find(tree)
    assert "halved" == found.name

    [verdict] = sabotage.run(tree, [found])

    assert verdict.problem is None, verdict.problem
    assert "AssertionError" in verdict.noticed
    assert _CODE == (tree / "libs" / "thing" / "src" / "thing" / "__init__.py").read_text()


def test_of_a_storys_cases_only_those_that_bear_the_mark_are_run(tree: Path) -> None:
    (tree / "tests" / "integration" / "test_thing.py").write_text(_CASES_STORY)
    [found] = sabotage.find(tree)

    [verdict] = sabotage.run(tree, [found])

    assert verdict.problem is None, verdict.problem
    assert "noticed" in verdict.noticed


_PLACED_STORY = """
import os, pathlib, time
import pytest
from thing import double

@pytest.mark.sabotage("halved")
@pytest.mark.sabotage("tripled")
def test_twice_two_is_four():
    mine, other = os.environ["WEFT_TEST_PLACE"], {{"0/2": "1/2", "1/2": "0/2"}}
    pathlib.Path("{folder}", mine[0]).touch()
    until = time.monotonic() + 60
    while not pathlib.Path("{folder}", other[mine][0]).exists():
        assert time.monotonic() < until, "alone"
        time.sleep(0.01)
    assert 4 == double(2)
"""


def test_two_are_tried_side_by_side_each_in_a_place_of_its_own_and_told_in_the_order_asked_for(
    tree: Path, tmp_path: Path
) -> None:
    # given a story that waits until it is run in the other place, too
    _patch(tree, "tripled", "    return 3 * n")
    (tree / "tests" / "integration" / "test_thing.py").write_text(_PLACED_STORY.format(folder=tmp_path))

    verdicts = sabotage.run(tree, sabotage.find(tree))

    assert ["halved", "tripled"] == [verdict.sabotage.name for verdict in verdicts]
    assert ["assert 4 == 2", "assert 4 == 6"] == [verdict.noticed.partition(": ")[2] for verdict in verdicts]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "old", "problem"),
    [
        ("    return n + n", "    return 2 * n", "passes all the same"),
        ("    return n", "    return 3 * n", "doesn't apply"),
        ("    return nothing", "    return 2 * n", "broke in its call instead of noticing: NameError"),
    ],
)
def test_a_sabotage_that_proves_nothing_is_an_error(tree: Path, line: str, old: str, problem: str) -> None:
    _patch(tree, "halved", line, old)
    [verdict] = sabotage.run(tree, sabotage.find(tree))
    assert problem in str(verdict.problem)


def test_a_story_without_sabotage_is_an_error(tree: Path) -> None:
    (tree / "tests" / "integration" / "test_naked.py").write_text("def test_naked():\n    pass\n")
    with pytest.raises(Failure, match=r"test_naked.py::test_naked; mark each"):
        sabotage.find(tree)


def test_a_missing_patch_and_an_idle_patch_are_errors(tree: Path) -> None:
    _story(tree, "other")
    with pytest.raises(Failure, match=r"no patch in .*: other"):
        sabotage.find(tree)
    _patch(tree, "other", "    return n")
    with pytest.raises(Failure, match=r"no story names these patches .*: halved"):
        sabotage.find(tree)


def test_sabotages_are_chosen_by_name_and_an_unknown_name_is_a_usage_error() -> None:
    everything = [Sabotage("a", "t1"), Sabotage("a", "t2"), Sabotage("b", "t1")]
    assert everything == sabotage.named(everything, ())
    assert everything[:2] == sabotage.named(everything, ("a",))
    with pytest.raises(Failure, match="no sabotage c; there are a, b") as failure:
        sabotage.named(everything, ("a", "c"))
    assert Exit.USAGE == failure.value.exit


@given(count=st.integers(0, 40), parts=st.integers(1, 7), seed=st.text())
def test_the_shares_are_equal_parts_of_the_whole(count: int, parts: int, seed: str) -> None:
    everything = [Sabotage(f"s{n}", f"t{n}") for n in range(count)]

    shares = [sabotage.share(everything, f"{k}/{parts}", seed) for k in range(1, parts + 1)]

    assert sorted(everything) == sorted(each for share in shares for each in share)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert shares[0] == sabotage.share(list(reversed(everything)), f"1/{parts}", seed)


@pytest.mark.parametrize("part", ["0/5", "6/5", "x", "1/0", "1/2/3"])
def test_a_share_that_is_none_is_a_usage_error(part: str) -> None:
    with pytest.raises(Failure) as failure:
        sabotage.share([], part, "")
    assert Exit.USAGE == failure.value.exit


def _line(test: str, phase: str, outcome: str, *, noticed: bool = False) -> dict[str, object]:
    return {"test": test, "phase": phase, "outcome": outcome, "noticed": noticed, "error": "AssertionError: no"}


_CASES = Sabotage("halved", "t.py::test_all")


def test_one_case_of_a_story_that_notices_is_enough() -> None:
    lines = [_line("t.py::test_all[a]", "call", "passed"), _line("t.py::test_all[b]", "call", "failed", noticed=True)]
    assert sabotage.judge(_CASES, lines, "").problem is None


def test_a_story_whose_setup_breaks_has_noticed_nothing() -> None:
    lines = [_line("t.py::test_all[a]", "setup", "failed", noticed=True)]
    assert "broke in its setup" in str(sabotage.judge(_CASES, lines, "").problem)


def test_a_skipped_story_has_noticed_nothing() -> None:
    lines = [_line("t.py::test_all", "setup", "passed"), _line("t.py::test_all", "call", "skipped")]
    assert "the story was skipped" == sabotage.judge(_CASES, lines, "").problem
    assert "did not run" in str(sabotage.judge(_CASES, [], "").problem)
