"""The suite: what is run beside what, in which environment, and in which order tests are given to pytest."""

import sys
from pathlib import Path

import pytest
from weft_client.failure import Failure
from weft_devtools import longest, suite, tree
from weft_devtools.suite import Check

_WAITS = "import pathlib, sys, time\nwhile not pathlib.Path('there').exists(): time.sleep(0.01)\n"


def _check(headline: str, code: str, *, beside: bool = False) -> Check:
    return Check(headline, (sys.executable, "-c", code), beside=beside)


def test_a_check_runs_beside_the_next_ones_and_is_told_after_them(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # given one that ends when a later one has run
    waits = _check("types", _WAITS + "print('two errors')\nsys.exit(1)", beside=True)
    makes = _check("tests", "open('there', 'w').close()\nprint('all passed')")
    # when
    failed = suite.run([waits, makes], tmp_path)
    # then
    assert ["types"] == failed
    said = capfd.readouterr().out
    assert said.index("all passed") < said.index("-- tests: ok") < said.index("two errors")
    assert said.index("two errors") < said.index("-- types: FAILED")


def test_checks_keep_what_they_compiled_wherever_they_are_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert [] == suite.run([_check("tests", "import sys; sys.exit(sys.dont_write_bytecode)")], tmp_path)


def test_slow_tests_are_given_as_files_each_once_and_the_longest_first() -> None:
    given = longest.slow_first(tree.root())
    assert list(longest.LONGEST) == given[: len(longest.LONGEST)]
    assert len(given) == len(set(given))
    files = {name for name in tree.files(tree.root()) if Path(name).name.startswith("test_") and name.endswith(".py")}
    assert {each for each in files if "mark.slow" in (tree.root() / each).read_text()} == set(given)
    assert set(longest.FOLDERS) == {each.partition("/")[0] for each in files}


def test_a_long_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"these have no slow tests: .*take them out of longest.py"):
        longest.slow_first(tmp_path)
