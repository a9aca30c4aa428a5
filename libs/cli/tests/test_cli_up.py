"""`weft up` and `weft down` on real servers, with stand-ins for the services."""

import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from weft_embedded import down, mesh_plan, run_file
from weft_embedded.run_file import RunFile
from weft_embedded.state import State
from weft_servers.port import choose

_spec = importlib.util.spec_from_file_location("stand_in", Path(__file__).with_name("stand_in.py"))
assert _spec is not None
assert _spec.loader is not None
stand_in = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(stand_in)

BOUND_S = 60.0
Weft = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    state = State(tmp_path / "state")
    yield state
    record = run_file.read(state)
    if record is not None and record.alive():
        os.kill(record.pid, signal.SIGTERM)
        _until(lambda: not record.alive())


@pytest.fixture
def weft(tmp_path: Path, state: State) -> Weft:
    """Runs `weft` with stand-ins for the services, on the state of this test."""
    env = stand_in.install(tmp_path / "stand-ins")

    def weft(command: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        argv = [sys.executable, "-m", "weft_cli", command, "--state", str(state.folder), *arguments]
        return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=BOUND_S, check=False)

    return weft


def _up(weft: Weft, state: State, *more: str) -> RunFile:
    done = weft("up", "--detach", "--port", str(choose()[0]), *more)
    assert done.returncode == 0, done.stdout + done.stderr
    record = run_file.read(state)
    assert record is not None
    return record


def _processes(record: RunFile) -> list[psutil.Process]:
    """The launcher and all below it."""
    launcher = psutil.Process(record.pid)
    return [launcher, *launcher.children(recursive=True)]


def _until(true: Callable[[], bool], bound_s: float = BOUND_S) -> None:
    deadline = time.monotonic() + bound_s
    while not true():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)


def _gone(processes: list[psutil.Process]) -> bool:
    def alive(process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        return False

    return not any(alive(each) for each in processes)


def _part(state: State, name: str) -> run_file.PartRow:
    record = run_file.read(state)
    assert record is not None
    return next(part for part in record.parts if part.name == name)


def test_up_starts_every_part_and_down_leaves_nothing_running(weft: Weft, state: State) -> None:
    port = choose()[0]

    up = weft("up", "--detach", "--port", str(port), "--workers", "2")

    assert (0, "") == (up.returncode, up.stderr)
    parts = {"nats", "postgres", *mesh_plan.SERVICES}
    record = run_file.read(state)
    assert record is not None
    assert parts | {"worker-1", "worker-2"} == {part.name for part in record.parts if part.state == "ready"}
    assert f"Weft serves at http://127.0.0.1:{port}" in up.stdout
    assert "What is the capital of France?" in up.stdout
    processes = _processes(record)

    down = weft("down")

    assert 0 == down.returncode, down.stderr
    assert _gone(processes)
    assert not state.run_file.exists()
    assert "told to end" in state.log("gateway").read_text()


def test_a_second_up_says_who_holds_the_state(weft: Weft, state: State) -> None:
    record = _up(weft, state)

    again = weft("up")

    assert 1 == again.returncode
    assert f"in use by `weft up` (process {record.pid}, at {record.url})" in again.stderr


def test_a_killed_launcher_leaves_nothing_running_and_the_next_up_takes_over(weft: Weft, state: State) -> None:
    record = _up(weft, state)
    processes = _processes(record)
    ports = state.ports.read_text()

    os.kill(record.pid, signal.SIGKILL)
    again = weft("up", "--detach")

    assert 0 == again.returncode, again.stdout + again.stderr
    _until(lambda: _gone(processes))
    assert ports == state.ports.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nats", "postgres", "scheduler"])
def test_a_killed_part_is_started_again_on_the_same_port(weft: Weft, state: State, name: str) -> None:
    _up(weft, state)
    before = _part(state, name)
    assert before.pid is not None

    os.kill(before.pid, signal.SIGKILL)
    _until(lambda: _part(state, name).restarts == 1 and _part(state, name).state == "ready")

    assert before.port == _part(state, name).port
    assert before.pid != _part(state, name).pid


@pytest.mark.slow
def test_the_builtin_model_is_deployed_once_in_the_life_of_a_state(weft: Weft, state: State) -> None:
    _up(weft, state)
    assert 0 == weft("down").returncode

    # These stand-ins forget their models, as if somebody had removed them.
    again = weft("up", "--detach")

    assert 0 == again.returncode, again.stderr
    assert "model tiny" not in again.stdout


@pytest.mark.slow
def test_a_part_that_cant_run_makes_up_fail_with_its_log(weft: Weft, state: State, tmp_path: Path) -> None:
    (tmp_path / "stand-ins" / "weft_scheduler" / "__main__.py").write_text("raise SystemExit('no such policy')")

    up = weft("up", "--detach", "--port", str(choose()[0]))

    assert 1 == up.returncode
    assert "scheduler was not ready" in up.stderr
    assert "no such policy" in up.stderr
    record = run_file.read(state)
    _until(lambda: record is None or not record.alive())


def test_a_busy_port_is_named_and_nothing_is_started(weft: Weft, state: State) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        up = weft("up", "--port", str(taken.getsockname()[1]))

    assert 1 == up.returncode
    assert "is taken by another process" in up.stderr
    assert not state.nats.exists()


def test_down_and_status_where_nothing_runs_say_so(weft: Weft) -> None:
    assert 3 == weft("down").returncode
    status: Any = weft("status", "--json")
    assert 3 == status.returncode
    assert json.loads(status.stdout)["running"] is False


def _foreground(state: State, tmp_path: Path, lifeline: int | None = None) -> "subprocess.Popen[str]":
    """A launcher in the foreground whose mesh is up."""
    env = {**os.environ, "PYTHONPATH": f"{tmp_path / 'stand-ins'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    env |= {"WEFT_LIFELINE_FD": str(lifeline)} if lifeline is not None else {}
    argv = [sys.executable, "-m", "weft_cli", "up", "--state", str(state.folder), "--port", str(choose()[0])]
    fds = (lifeline,) if lifeline is not None else ()
    launcher = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True, pass_fds=fds)
    assert launcher.stdout is not None
    assert any(line.startswith("state:") for line in launcher.stdout)
    return launcher


@pytest.mark.usefixtures("weft")
def test_ctrl_c_ends_everything_in_order(state: State, tmp_path: Path) -> None:
    launcher = _foreground(state, tmp_path)
    record = run_file.read(state)
    assert record is not None
    processes = _processes(record)[1:]

    launcher.send_signal(signal.SIGINT)
    said = launcher.communicate(timeout=BOUND_S)[0]

    assert 0 == launcher.returncode
    assert "stopped" == said.strip().splitlines()[-1]
    assert _gone(processes)


@pytest.mark.slow
@pytest.mark.usefixtures("weft")
def test_a_launcher_ends_with_whoever_holds_its_lifeline(state: State, tmp_path: Path) -> None:
    lifeline, held = os.pipe()
    launcher = _foreground(state, tmp_path, lifeline)
    os.close(lifeline)

    os.close(held)

    assert "stopped" in launcher.communicate(timeout=BOUND_S)[0]
    assert 0 == launcher.returncode


def test_a_full_disk_keeps_nothing_from_ending(weft: Weft, state: State) -> None:
    record = _up(weft, state)
    processes = _processes(record)
    # no process can write a byte to a file, as where the disk is full
    for each in processes:
        with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
            each.rlimit(psutil.RLIMIT_FSIZE, (0, 0))

    done = weft("down")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "killed" not in done.stdout
    _until(lambda: _gone(processes))


def test_what_does_not_end_in_time_is_killed_and_said(weft: Weft, state: State) -> None:
    record = _up(weft, state)
    # the launcher hangs, so that it asks nobody anything any more, and then all that would otherwise end with it
    psutil.Process(record.pid).suspend()
    processes = _processes(record)
    for each in processes:
        each.suspend()

    forced = down.run(state, timeout_s=1.0)

    assert forced is not None
    assert f"{len(processes)} processes did not end within 1 s and were killed" in forced
    _until(lambda: _gone(processes))
    assert not down.is_running(state)


def test_what_a_killed_launcher_left_hanging_is_killed(weft: Weft, state: State) -> None:
    record = _up(weft, state)
    processes = _processes(record)
    deaf = psutil.Process(next(part.pid for part in record.parts if part.name == "scheduler") or 0)
    deaf.suspend()
    psutil.Process(record.pid).kill()

    forced = down.run(state, timeout_s=1.0)

    assert forced is not None
    assert "killed" in forced
    _until(lambda: _gone(processes))


@pytest.mark.slow
def test_a_second_signal_waits_for_nothing_that_hangs(weft: Weft, state: State) -> None:
    record = _up(weft, state)
    processes = _processes(record)
    for part in record.parts:
        if part.name in ("gateway", "nats"):
            os.kill(part.pid or 0, signal.SIGSTOP)

    for _ in range(2):
        os.kill(record.pid, signal.SIGTERM)
        _until(lambda: (found := run_file.read(state)) is None or found.stage == "stopping")

    _until(lambda: _gone(processes))
    assert "stopped" in state.log("launcher").read_text()  # in order, and not by the last resort
