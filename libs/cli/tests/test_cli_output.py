"""Where the words of a command go: pipes that close, full disks, closed descriptors, other alphabets."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner
from weft_cli import main, render
from weft_cli.app import app
from weft_client.command_names import COMMANDS, SECTIONS, pasteable
from weft_client.failure import Exit

LONG = ["events", "--catalogue", "--json"]
SHORT = ["completion", "bash"]


def weft(words: list[str], **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "weft_cli", *words], stderr=subprocess.PIPE, text=True, **more)


@pytest.mark.parametrize("words", [LONG, SHORT])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_seen_enough_is_no_failure(words: list[str], unbuffered: str) -> None:
    # given an output that nobody reads
    reading, writing = os.pipe()
    os.close(reading)
    # when a command says something, at once or at its end
    process = weft(words, stdout=writing, env={**os.environ, "PYTHONUNBUFFERED": unbuffered})
    os.close(writing)
    said = process.communicate(timeout=60)[1]
    assert (0, "") == (process.returncode, said)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full, which Linux has")
@pytest.mark.parametrize("words", [LONG, SHORT])
def test_an_output_that_is_full_is_one_sentence(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        process = weft(words, stdout=full)
        said = process.communicate(timeout=60)[1]
    assert (1, "weft: the output: No space left on device\n") == (process.returncode, said)


def test_a_closed_output_is_no_failure() -> None:
    script = '"$0" -m weft_cli events --catalogue >&-'
    ran = subprocess.run(["sh", "-c", script, sys.executable], capture_output=True, text=True, timeout=60, check=False)
    assert (0, "") == (ran.returncode, ran.stderr)


def test_a_letter_that_the_output_cant_show_is_replaced() -> None:
    program = "from weft_cli import output; output.prepare(); print('a \u2026')"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ("a ?\n", "") == (ran.stdout, ran.stderr)


def test_no_line_of_the_help_is_cut_off() -> None:
    for words in ([], ["deploy"], ["logs"], ["remove"], ["explain"], ["hold"]):
        listed = CliRunner().invoke(app, [*words, "--help"], terminal_width=80)
        assert 0 == listed.exit_code
        assert "..." not in listed.stdout.replace("[ARGS]...", "")


def test_an_argument_too_many_is_wrong_usage_in_every_command() -> None:
    for command in app.registered_commands:
        name = command.name or str(getattr(command.callback, "__name__", ""))
        assert not (command.context_settings or {}).get("allow_extra_args"), name
        if name in ("test", "lint", "nats-config"):  # the last takes as many servers as there are
            continue
        refused = CliRunner().invoke(app, [name, "one", "two", "three"])
        assert 2 == refused.exit_code, name


REPLICA = ("replica", "model", "revision", "state", "node", "engine", "reason")
ROW = ("m-fuqjyvfxdetsvqmf-12", "tiny", 1, "ready", "worker-1", "llama.cpp 2026.10.11549", "")
LONG_REASON = "loading again after: /a/path/without/a/break/that/is/long.gguf does not exist on this node"


def at_a_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))


@pytest.mark.parametrize("width", [80, 100, 200])
@pytest.mark.parametrize("reason", ["", LONG_REASON])
def test_ids_stay_whole_and_in_their_line_and_texts_give_way(
    monkeypatch: pytest.MonkeyPatch, capsys: Any, width: int, reason: str
) -> None:
    at_a_terminal(monkeypatch, width)
    render.table(REPLICA, [(*ROW[:-1], reason), ("m-fuqjyvfxdetsvqmf-13", *ROW[1:])])
    shown: str = capsys.readouterr().out
    for id in ("m-fuqjyvfxdetsvqmf-12", "m-fuqjyvfxdetsvqmf-13", "worker-1", "ready"):
        assert id in shown
    assert "\x1b" not in shown
    letters = "".join(shown.split())
    assert all("".join(word.split()) in letters for word in ("2026.10.11549", "llama.cpp"))
    if "replica  " not in shown or width == 200:  # else each row is a list, and a path may be longer than the screen
        assert width >= max(len(line.rstrip()) for line in shown.splitlines())


def test_a_table_that_fits_no_way_becomes_lists_that_lose_nothing(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    at_a_terminal(monkeypatch, 40)
    render.table(REPLICA, [(*ROW[:-1], LONG_REASON), ("m-fuqjyvfxdetsvqmf-13", *ROW[1:])])
    lines = capsys.readouterr().out.splitlines()
    assert "replica   m-fuqjyvfxdetsvqmf-12" == lines[0]
    assert f"reason    {LONG_REASON}" in lines
    assert "replica   m-fuqjyvfxdetsvqmf-13" in lines[lines.index("") :]


def test_columns_that_say_nothing_go_before_anything_folds(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    at_a_terminal(monkeypatch, 30)
    render.table(("id", "reason", "state"), [("m-fuqjyvfxdetsvqmf-1", "", "ready")])
    assert ["id                    state", "m-fuqjyvfxdetsvqmf-1  ready"] == [
        line.rstrip() for line in capsys.readouterr().out.splitlines()
    ]


def test_the_help_lists_every_command_once_and_first_steps_first() -> None:
    group: Any = get_command(app)
    assert sorted(group.commands) == sorted(COMMANDS)
    listed = CliRunner().invoke(app, ["--help"], terminal_width=80).stdout
    places = [listed.index(f"\n{title}:") for title, _ in SECTIONS]
    assert "First steps" == SECTIONS[0][0]
    assert sorted(places) == places
    assert all(f"\n  {name} " in listed for name in COMMANDS)


def test_the_help_of_an_installed_weft_has_no_commands_of_a_source_tree() -> None:
    program = (
        "import sys; sys.modules['weft_devtools'] = None\n"  # as where it isn't installed
        "from weft_cli.main import main; sys.argv = ['weft', '--help']; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    # then
    assert (0, "") == (done.returncode, done.stderr)
    listed = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ") and line.split()}
    assert {*COMMANDS} - {"dev", "test", "lint"} == {*COMMANDS} & listed


@pytest.mark.parametrize(
    ("called", "hint"), [(None, "weft up"), ("./weft", "./weft up"), ("/a b/weft", "'/a b/weft' up")]
)
def test_a_hint_names_the_command_as_it_was_called(
    monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path, called: str | None, hint: str
) -> None:
    monkeypatch.delenv("WEFT_CALLED_AS", raising=False)
    if called is not None:
        monkeypatch.setenv("WEFT_CALLED_AS", called)
    for words in (["nodes", "--state", str(tmp_path)], ["status", "--state", str(tmp_path)]):
        monkeypatch.setattr("sys.argv", ["weft", *words])
        assert int(Exit.NOT_RUNNING) == main.main()
        out, err = capsys.readouterr()
        assert hint in out + err
    assert "the weft of it, my-weft up" == pasteable("the weft of it, my-weft up")


def test_what_an_engine_says_neither_breaks_a_table_nor_commands_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    render.table(("reason",), [("first\nsecond \x1b[2Jthird\x9b",)])
    assert ["  REASON", "  first second [2Jthird"] == capsys.readouterr().out.splitlines()
