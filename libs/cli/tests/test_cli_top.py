"""`weft top`: what a screen shows, how it fits, and how it ends."""

import contextlib
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Generator
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner
from weft_cli.app import app
from weft_cli.top.looks import Look, look
from weft_cli.top.screen import screen, shares
from weft_testing.fake_gateway import FakeGateway

Watched = tuple[subprocess.Popen[bytes], Callable[[], str], int]
LOAD = ("GET", "/api/load?most=100")


def load(**more: Any) -> Any:
    totals = {
        "nodes": {"healthy": 998, "offline": 2},
        "models": {"ready": 1},
        "replicas": {"ready": 2, "loading": 1},
        "running": 7,
        "waiting": 3,
        "tokens": 1000,
        "memory": 80 << 30,
        "claimed": 20 << 30,
    }
    model = {"name": "tiny", "state": "ready", "ready": 2, "wanted": 3, "running": 7, "waiting": 3, "tokens": 1000}
    node = {
        "name": "node-1",
        "state": "healthy",
        "replicas": 2,
        "running": 7,
        "devices": 1,
        "memory": 80 << 30,
        "claimed": 20 << 30,
        "pressure": 1 << 30,
    }
    replica = {"id": "m-1-1", "model": "tiny", "node": "node-1", "state": "ready", "own": 7, "running": 7}
    return {
        "gateway": {"instance": "gateway-1", "ready": True},
        "at_s": 10.0,
        "position": 42,
        "connected": True,
        "brake": None,
        "totals": totals,
        "models": [model],
        "nodes": [node],
        "replicas": [{**replica, "shunned": None}],
        "problems": ["node node-7 is offline", "node node-8 is offline"],
        **more,
    }


def later(seconds: float, tokens: int, instance: str = "gateway-1") -> Any:
    said = load(at_s=10.0 + seconds, gateway={"instance": instance, "ready": True})
    said["totals"] |= {"tokens": 1000 + tokens}
    said["models"][0] |= {"tokens": 1000 + tokens}
    return said


def shown(found: Look | None, *, absent: str | None = None, width: int = 80, height: int | None = 24) -> list[str]:
    console = Console(width=width, color_system=None, highlight=False, markup=False)
    with console.capture() as said:
        console.print(screen("12:00:00   http://gateway", found, absent, width, height))
    return said.get().splitlines()


def test_speed_is_what_lies_between_two_looks_at_one_gateway() -> None:
    first = look(load(), None)
    assert (None, {}) == (first.speed, first.speeds)
    second = look(later(2.0, 300), first)
    assert (150.0, {"tiny": 150.0}) == (second.speed, second.speeds)
    assert (None, {}) == (look(later(2.0, 300, "gateway-2"), first).speed, look(later(2, 3, "gateway-2"), first).speeds)
    assert 0.0 == look(later(4.0, 0), second).speed  # a model that was deleted took its tokens along


def test_a_screen_has_the_totals_what_is_wrong_and_the_busiest_of_each_sort() -> None:
    lines = shown(look(later(2.0, 300), look(load(), None)))
    text = "\n".join(lines)
    assert "nodes 1,000 (998 healthy, 2 offline)" in text
    assert "requests 7, waiting 3   tokens/s 150" in text
    assert "20.0 GiB of 80.0 GiB claimed" in text
    assert "! node node-7 is offline" in text
    assert [["tiny", "ready", "2/3", "7", "3", "150"]] == [line.split() for line in lines if line.startswith("tiny")]
    assert "node-1" in text
    assert "m-1-1" in text


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 12), (200, 60)])
def test_a_screen_is_never_wider_nor_higher_than_there_is_room(width: int, height: int) -> None:
    many = load(
        models=[{**load()["models"][0], "name": f"a-name-that-is-quite-long/{n}"} for n in range(100)],
        nodes=[{**load()["nodes"][0], "name": f"node-{n}"} for n in range(100)],
        replicas=[{**load()["replicas"][0], "id": f"m-{n}-1"} for n in range(100)],
        problems=["x" * 300] * 20,
    )
    lines = shown(look(many, None), width=width, height=height)
    assert len(lines) <= max(height, 16)
    assert max(map(len, lines)) <= width


def test_rows_are_shared_and_what_one_list_does_not_need_the_others_get() -> None:
    assert [1, 5, 4] == shares([1, 9, 9], 10)
    assert [1, 1, 0] == shares([9, 9, 0], 1)
    assert [3, 2, 1] == shares([3, 2, 1], None)


def test_a_gateway_that_does_not_answer_is_told_beside_what_was_seen_last() -> None:
    assert "no answer: refused; it is asked again" in shown(None, absent="refused")[1]
    lines = shown(look(load(), None), absent="refused")
    assert "tiny" in "\n".join(lines)


def test_what_others_wrote_commands_no_terminal() -> None:
    lines = shown(look(load(problems=["\x1b[2Jgone"], models=[{**load()["models"][0], "name": "a\x1bb"}]), None))
    assert "\x1b" not in "\n".join(lines)


def test_without_a_terminal_it_is_printed_once(fake: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_URL", fake.url)
    fake.answers[LOAD] = (200, load())
    said = CliRunner().invoke(app, ["top", "--interval", "0.2"])
    assert 0 == said.exit_code, said.output
    assert 2 == len([each for each in fake.asked if each[1].startswith("/api/load")])
    assert "requests 7, waiting 3" in said.stdout
    as_json = json.loads(CliRunner().invoke(app, ["top", "--interval", "0.2", "--json"]).stdout)
    # this gateway's clock stands still: no speed is better than a wrong one
    assert (None, None) == (as_json["totals"]["tokens_s"], as_json["models"][0]["tokens_s"])


@contextlib.contextmanager
def at_a_terminal(
    fake: FakeGateway, **environment: str
) -> Generator[tuple[subprocess.Popen[bytes], Callable[[], str], int]]:
    """`weft top` at a terminal of 80 by 24: the process, all that it has written, and where keys are typed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    words = [sys.executable, "-m", "weft_cli", "top", "--url", fake.url, "--interval", "0.2"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
    process = subprocess.Popen(
        words,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**kept, "TERM": "xterm", **environment},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C is a signal
    )
    os.close(theirs)
    written = bytearray()

    def said() -> str:
        while select.select([ours], [], [], 0.05)[0]:
            try:
                written.extend(os.read(ours, 1 << 16))
            except OSError:  # the other end is closed
                break
        return written.decode(errors="replace")

    try:
        yield process, said, ours
    finally:
        process.kill()
        process.wait(10)
        os.close(ours)


def until_said(said: Callable[[], str], what: str, bound_s: float = 60.0) -> None:
    until = time.monotonic() + bound_s
    while what not in said():
        assert time.monotonic() < until, f"{what!r} was not said: {said()[-2000:]}"


@pytest.mark.parametrize("key", [b"q", b"\x03"])
def test_at_a_terminal_it_goes_on_without_the_gateway_and_ends_by_a_key(fake: FakeGateway, key: bytes) -> None:
    fake.answers["GET", "/api/load?most=24"] = (200, load())
    with at_a_terminal(fake) as (process, said, keys):
        until_said(said, "node-1")
        fake.answers["GET", "/api/load?most=24"] = (503, {"detail": "it is starting"})
        until_said(said, "no answer: it is starting")
        fake.answers["GET", "/api/load?most=24"] = (200, load(position=4711))
        until_said(said, "log 4,711")
        os.write(keys, key)
        said()
        assert process.wait(30) in (0, 130)
        assert "Traceback" not in said()


def test_at_a_dumb_terminal_it_is_printed_once(fake: FakeGateway) -> None:
    fake.answers[LOAD] = (200, load())
    with at_a_terminal(fake, TERM="dumb") as (process, said, _):
        until_said(said, "m-1-1")
        assert 0 == process.wait(30)
        assert "\x1b" not in said()


def test_a_key_that_may_not_read_ends_it_with_the_reason(fake: FakeGateway) -> None:
    fake.otherwise = (403, {"detail": "read is needed here"})
    with at_a_terminal(fake) as (process, said, _):
        assert 1 == process.wait(30)
        assert "read is needed here" in said()
