"""Where the words of a command go: pipes that close, full disks, closed descriptors, other alphabets."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner
from weft_cli import render
from weft_cli.app import app

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
    program = "from weft_cli import outlet; outlet.prepare(); print('a \u2026')"
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


def test_a_table_on_a_narrow_terminal_loses_no_letter(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(render, "on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    assert 40 == Console().width
    render.table(("id", "state", "reason"), [("m-fuqjyvfxdetsvqmf-1", "ready", "a reason that is rather long" * 2)])
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert "m-fuqjyvfxdetsvqmf-1" == "".join(line.split(" ")[0] for line in shown.splitlines()[1:]).strip()


def test_what_an_engine_says_neither_breaks_a_table_nor_commands_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    render.table(("reason",), [("first\nsecond \x1b[2Jthird\x9b",)])
    assert ["  REASON", "  first second [2Jthird"] == capsys.readouterr().out.splitlines()
