"""The mutation tool, on a tree with one small service."""

import subprocess
import textwrap
from contextlib import nullcontext
from pathlib import Path

import pytest
from weft_client.failure import Exit, Failure
from weft_devtools import commands
from weft_devtools import tree as weft
from weft_devtools.mutation import equivalents, runner
from weft_devtools.mutation import run as mutation
from weft_devtools.mutation.mutants import Mutant, mutants
from weft_devtools.mutation.run import Draw, Tally

_RULES = '''
LIMIT = 3


def over(n):
    """Whether it is too much."""
    return n > LIMIT


def least(n):
    return max(n, 0 + 0)


def never_asked(n):
    return n + 1


def endless(n):
    while not n:
        pass
    return n


async def greeting(known: "int | None"):
    return "good morning to you" if known else "hello"
'''
_TESTS = """
import asyncio
import subprocess
import sys
from small.domain.rules import endless, greeting, least, never_asked, over


def test_a_lot_is_over():
    assert over(5)
    assert not over(1)


def test_nothing_is_below_zero():
    assert least(-1) == 0
    assert least(2) == 2


def test_it_ends():
    assert endless(2) == 2


def test_that_starts_a_process():
    subprocess.run([sys.executable, "-c", ""], check=True)
    assert never_asked(1) == 2


async def test_who_is_known_is_greeted():
    assert await greeting(1) == "good morning to you"
    assert await greeting(0) == "hello"
"""
RULES = "services/small/src/small/domain/rules.py"


@pytest.fixture(autouse=True)
def few_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all that is installed for pytest, the small service's tests need one: to import the others takes seconds."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "pytest_asyncio.plugin")


@pytest.fixture
def all_plugins(few_plugins: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    monkeypatch.delenv("PYTEST_PLUGINS")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with one service, whose rules some tests hold."""
    root = tmp_path / "tree"
    (root / RULES).parent.mkdir(parents=True)
    (root / RULES).write_text(_RULES)
    (root / "services/small/tests").mkdir()
    (root / "services/small/tests/test_small.py").write_text(_TESTS)
    options = 'markers = ["slow: x"]\nasyncio_mode = "auto"\naddopts = "--import-mode=importlib"\n'
    (root / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\n{options}")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


def _list(root: Path, **entry: str) -> None:
    lines = "".join(f"{name} = '{value}'\n" for name, value in entry.items())
    (root / "tests").mkdir(exist_ok=True)
    (root / "tests/equivalent_mutants.toml").write_text(f"[[equivalent]]\n{lines}")


def _changes(found: list[Mutant]) -> set[tuple[str, str]]:
    return {(each.before, each.after) for each in found}


@pytest.mark.usefixtures("all_plugins")
@pytest.mark.slow
def test_who_lives_is_told_who_dies_is_not_and_an_equivalent_one_is_passed_over(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "LEAST_CPU_S", 1.0)  # what has no end takes all of it
    _list(tree, file=RULES, line="return max(n, 0 + 0)", becomes="return max(n, 0 - 0)", reason="for the test")

    [tally] = mutation.run(tree, Draw())

    assert {
        ("return n > LIMIT", "return n >= LIMIT"),
        ("return n + 1", "return n - 1"),
        ("return n + 1", "return n + 2"),
    } == _changes(tally.lived)
    assert 1 == tally.equivalent
    assert 2 == tally.outcomes["unreached"], "a test that starts a process is not asked"
    assert 1 == tally.outcomes["hung"], "`while n` has no end"
    assert tally.killed > len(tally.lived)
    told = capsys.readouterr().out
    assert f"{RULES}:7: LIVED\n    - return n > LIMIT\n    + return n >= LIMIT\n" in told
    assert "0 - 0" not in told
    assert _RULES == (tree / RULES).read_text()


def test_what_is_changed_are_tokens_in_functions_and_neither_annotations_nor_texts_for_people(tree: Path) -> None:
    found = mutants(tree, "small", RULES)

    assert {
        ("return n > LIMIT", "return n >= LIMIT"),
        ("return n + 1", "return n - 1"),
        ("return n + 1", "return n + 2"),
    } <= _changes(found)
    assert {
        'return "good morning to you" if (known) and False else "hello"',
        'return "good morning to you" if (known) or True else "hello"',
        "return \"good morning to you\" if known else 'hello_'",
    } == {each.after for each in found if "known" in each.before}
    assert not any("LIMIT = " in each.before or each.before.startswith('"""') for each in found)


def test_a_dropped_case_a_lost_negation_and_a_condition_without_an_operator_are_mutants(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(
        textwrap.dedent("""
        def one(x):
            if x.there:
                return not x.gone
            match x:
                case 1:
                    return (x
                            and x.more)
                # nothing
                case None:
                    pass
                    # really
                case _:
                    assert_never(x)
        """)
    )
    found = mutants(tmp_path, "", "rules.py")

    assert {
        ("if x.there:", "if not x.there:"),
        ("return not x.gone", "return x.gone"),
        ("case 1:", "case 2:"),
        ("case 1:", ""),
        ("return (x", "return (x or x.more)"),
        ("# nothing", ""),
    } == _changes(found)
    [without] = [each.text for each in found if each.before == "# nothing"]
    assert without.endswith("            and x.more)\n        case _:\n            assert_never(x)\n")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"line": "return n > 3"}, r"rules.py: no line reads 'return n > 3'"),
        ({"becomes": "return LIMIT"}, r"rules.py: no mutant makes 'return n > LIMIT' into 'return LIMIT'"),
        ({"file": "services/gone.py"}, r"services/gone.py: there is no such file"),
        ({"reason": " "}, r"an entry has file, line, becomes and reason"),
    ],
)
def test_an_equivalent_that_is_gone_or_not_whole_is_an_error_by_name(
    tree: Path, change: dict[str, str], says: str
) -> None:
    entry = {"file": RULES, "line": "return n > LIMIT", "becomes": "return n >= LIMIT", "reason": "for the test"}
    _list(tree, **entry | change)
    with pytest.raises(Failure, match=says):
        mutation.run(tree, Draw())


def test_a_test_that_fails_unchanged_is_an_error_by_name(tree: Path) -> None:
    (tree / "services/small/tests/test_red.py").write_text("def test_red():\n    assert False\n")
    with pytest.raises(Failure, match=r"test_red\.py::test_red fails without any mutant"):
        mutation.run(tree, Draw(part="1/9", seed="any"))


def test_what_is_listed_of_this_tree_is_there() -> None:
    listed = equivalents.read(weft.root())
    assert listed
    equivalents.check(weft.root(), listed)


def test_a_mutant_that_a_tests_own_module_trips_over_is_noticed(tree: Path) -> None:
    module = "import pytest\nfrom small.domain.rules import over\n\nCASES = {False: 5}[over(3)]\n\n\n"
    case = "def test_a_lot_is_over():\n    assert over(CASES)\n"
    (tree / "services/small/tests/test_small.py").write_text(module + case)

    [tally] = mutation.run(tree, Draw())

    assert 1 == tally.killed
    assert ("return n > LIMIT", "return n >= LIMIT") not in _changes(tally.lived)


def test_no_package_is_begun_for_which_the_time_is_up(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "services/small/tests/conftest.py").write_text("import time\n\ntime.sleep(60)\n")

    assert [] == mutation.run(tree, Draw(limit_s=2.0))

    assert "small: the time was up before its tests had run unchanged" in capsys.readouterr().out


def test_where_rules_have_a_room_among_the_tests_only_that_room_is_asked(tree: Path) -> None:
    room = tree / "services/small/tests/domain"
    room.mkdir()
    (tree / "services/small/tests/test_small.py").rename(room / "test_small.py")
    (tree / "services/small/tests/test_story.py").write_text("def test_red():\n    assert False\n")

    [tally] = mutation.run(tree, Draw(part="1/3", seed="any"))

    assert tally.counted


def test_only_files_that_differ_from_a_commit_are_mutated(tree: Path) -> None:
    other = tree / "services/small/src/small/domain/other.py"
    other.write_text("def f(n):\n    return n + 1\n")
    git = ["git", "-C", str(tree), "-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "all"], check=True)

    assert [] == mutation.run(tree, Draw(changed="HEAD"))
    other.write_text("def f(n):\n    return n + 2\n")
    [tally] = mutation.run(tree, Draw(changed="HEAD"))

    assert {"services/small/src/small/domain/other.py"} == {each.file for each in tally.lived}
    with pytest.raises(Failure, match="--changed nowhere"):
        mutation.run(tree, Draw(changed="nowhere"))


def test_a_package_that_has_no_rules_is_a_usage_error(tree: Path) -> None:
    with pytest.raises(Failure, match="no rules to mutate in large; there are small") as failure:
        mutation.run(tree, Draw(names=("large",)))
    assert Exit.USAGE == failure.value.exit


@pytest.mark.parametrize(("lived", "report_only", "fails"), [(1, False, False), (2, False, True), (2, True, False)])
def test_it_fails_where_more_than_a_tenth_lives_unless_it_only_reports(
    monkeypatch: pytest.MonkeyPatch, lived: int, report_only: bool, fails: bool
) -> None:
    tally = Tally("small")
    tally.outcomes.update({"killed": 10 - lived})
    tally.lived = [Mutant("small", RULES, 1, "a", "b", 0, "")] * lived

    def tried(root: Path, draw: Draw) -> list[Tally]:
        return [tally]

    monkeypatch.setattr(mutation, "run", tried)
    with pytest.raises(Failure, match="80% of the mutants were noticed") if fails else nullcontext():
        commands.mutate((), None, None, "", None, report_only=report_only)


def test_options_that_do_not_go_together_are_a_usage_error() -> None:
    for chosen, options in ((["--slow", "--mutate"], []), ([], ["--share"]), (["--sabotage"], ["--changed"])):
        with pytest.raises(Failure) as failure:
            commands.refuse_what_does_not_go_together(chosen, options)
        assert Exit.USAGE == failure.value.exit
    commands.refuse_what_does_not_go_together(["--mutate"], ["--share", "--changed", "--limit", "--report-only"])
