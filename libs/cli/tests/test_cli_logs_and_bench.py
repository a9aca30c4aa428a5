"""Logs of this machine, lines for people, a bench's figures, and completion."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_cli.bench.figures import Sample, figures, percentile
from weft_cli.bench.http_stream import Place
from weft_cli.commands import bench
from weft_cli.commands.logs import _unseen
from weft_cli.log_files import follow, last_lines
from weft_cli.log_format import readable
from weft_client.failure import Failure


def test_the_last_lines_are_whole_and_what_follows_comes_over_a_cut(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("".join(f"{n}\n" for n in range(50_000)) + "half")
    lines, place = last_lines(log, 2)
    assert ["49998", "49999"] == lines
    rest = follow(log, place)
    assert None is next(rest)
    with log.open("a") as file:
        file.write(" whole\n")
    assert "half whole" == next(rest)
    os.truncate(log, 0)
    assert None is next(rest)
    with log.open("a") as file:
        file.write("anew\n")
    assert "anew" == next(each for each in rest if each)


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=6), st.lists(st.sampled_from(["x", "y"]), max_size=3))
def test_after_a_break_no_line_is_told_twice(before: list[str], fresh: list[str]) -> None:
    events = [("message", line) for line in [*before, "last", *fresh]] + [("caught_up", ""), ("message", "live")]
    assert [*fresh, "live"] == list(_unseen(events, "last"))


def test_a_first_look_is_told_as_it_comes() -> None:
    assert ["a", "b"] == list(_unseen([("message", "a"), ("caught_up", ""), ("message", "b")], None))


def test_a_json_line_becomes_one_for_people_and_any_other_stays_and_is_harmless() -> None:
    line = json.dumps({"event": "lost", "level": "warning", "timestamp": "2026-01-02T03:04:05Z", "node": "n", "n": 2})
    assert "03:04:05 warning lost  node=n  n=2" == readable(line, styled=False)
    assert "plain [0m" == readable("plain \x1b[0m", styled=False)


def test_a_levels_figures_count_what_the_end_cut_off() -> None:
    whole = Sample(0.0, 0.1, 1.1, pieces=10, tokens=20, whole=True)
    cut = Sample(1.1, 1.3, 1.8, pieces=5)
    failed = Sample(0.0, error="503: busy")
    found = figures(2, 2.0, [whole, cut, failed])
    assert (1, 1, 30, 15.0, 7.5) == (
        found.requests,
        found.errors,
        found.tokens,
        found.tokens_per_second,
        found.tokens_per_second_and_stream,
    )
    assert (100.0, 200.0) == (found.first_token_ms_p50, found.first_token_ms_p95)
    assert {"503: busy": 1} == found.reasons


@given(st.lists(st.floats(0, 1000), min_size=1), st.integers(1, 100))
def test_a_percentile_is_a_value_that_so_many_do_not_exceed(values: list[float], percent: int) -> None:
    found = percentile(values, percent)
    assert found is not None
    assert 100 * sum(value <= found + 0.01 for value in values) >= percent * len(values)


@pytest.mark.parametrize(
    ("url", "authority", "path"),
    [
        ("127.0.0.1:8080", "127.0.0.1:8080", "/v1/chat/completions"),
        ("https://api.example.org/v1/", "api.example.org", "/v1/chat/completions"),
        ("http://[::1]:9/serve/v1", "[::1]:9", "/serve/v1/chat/completions"),
    ],
)
def test_any_servers_base_url_is_taken(url: str, authority: str, path: str) -> None:
    assert (authority, path) == (Place.of(url).authority, Place.of(url).path)


@pytest.mark.parametrize("text", ["", "0", "1,,2", "x", "99999", "-1"])
def test_levels_that_cant_be_meant_are_refused(text: str) -> None:
    with pytest.raises(Failure, match="want numbers"):
        bench.levels(text)


def test_the_command_line_starts_without_what_most_commands_do_not_need() -> None:
    heavy = ("rich", "psutil", "httptools", "asyncio", "httpx", "uvicorn", "nats")
    program = f"import sys, weft_cli.app; print([m for m in {heavy!r} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert "[]" == loaded.stdout.strip()


@pytest.fixture
def typed(tmp_path: Path) -> Path:
    """The command as it is typed."""
    weft = tmp_path / "weft"
    weft.write_text(f'#!/bin/sh\nexec {sys.executable} -m weft_cli "$@"\n')
    weft.chmod(0o755)
    return weft


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("doc", "doctor"),
        ("completion z", "zsh"),
        ("deploy --engine s", "simulated"),
        ("deploy --engine-", "--engine-arg"),
        ("nodes --js", "--json"),
    ],
)
def test_bash_completes_commands_options_and_values(typed: Path, line: str, offered: str) -> None:
    words = line.split()
    script = f"""
eval "$({typed} completion bash)"
COMP_WORDS=({typed} {line}) COMP_CWORD={len(words)}
_weft_completion {typed}
echo "${{COMPREPLY[@]}}"
"""
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert offered == ran.stdout.strip()


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed (Debian: apt install fish)")
def test_fish_completes_commands_and_paths(typed: Path) -> None:
    def offered(line: str) -> list[str]:
        script = f'fish_add_path --path {typed.parent}; weft completion fish | source; complete -C "{line}"'
        ran = subprocess.run(
            ["fish", "--no-config", "-c", script], capture_output=True, text=True, timeout=60, check=True
        )
        return [each.split("\t")[0] for each in ran.stdout.splitlines()]

    assert ["doctor"] == offered("weft doc")
    assert [str(typed)] == offered(f"weft deploy {typed.parent}/w")
