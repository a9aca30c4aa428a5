"""The supervisor, with commands that behave and commands that don't."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from weft_servers import supervised
from weft_servers.supervised import CannotStart, SupervisedProcess, launch
from weft_servers.supervisor import main

Until = Callable[[Callable[[], bool]], None]
Runs = Callable[[int], bool]
Parent = Callable[[str, Path], tuple[subprocess.Popen[str], list[int]]]

DEAF = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(120)"
QUIET_END = (
    "import signal, sys, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: (print('asked', flush=True), sys.exit(5)))\n"
    "print('up', flush=True)\ntime.sleep(120)"
)


def python(code: str, tmp_path: Path, grace_s: float = 10.0) -> SupervisedProcess:
    return launch([sys.executable, "-c", code], log=tmp_path / "log", grace_s=grace_s)


def test_the_commands_status_is_the_supervisors(tmp_path: Path):
    for code, status in (("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 137), ("", 0)):
        process = python(code, tmp_path)

        assert status == process.wait(30)
        assert status == process.stop()


def test_stopping_asks_first(tmp_path: Path, until: Until):
    process = python(QUIET_END, tmp_path)
    until(lambda: "up" in process.log.read_text())

    assert process.poll() is None
    assert process.stop() == 5
    assert process.log.read_text().split() == ["up", "asked"]


def test_a_command_that_will_not_end_is_killed_after_its_grace_time(tmp_path: Path, until: Until):
    process = python(DEAF, tmp_path, grace_s=0.2)
    until(lambda: "up" in process.log.read_text())

    assert process.stop() == 128 + signal.SIGKILL


def test_the_command_ends_when_the_parent_is_killed(tmp_path: Path, parent: Parent, runs: Runs, until: Until):
    lines = (
        "from weft_servers.supervised import launch\n"
        "g = launch(['sleep', '120'], log=folder / 'log')\nprint(g.pid, g.supervisor_pid)"
    )
    owner, pids = parent(lines, tmp_path)
    assert [runs(pid) for pid in pids] == [True, True]

    owner.kill()

    until(lambda: not any(runs(pid) for pid in pids))


@pytest.mark.skipif(sys.platform != "linux", reason="PDEATHSIG is Linux's")
def test_a_killed_supervisor_takes_the_command_along(tmp_path: Path, runs: Runs, until: Until):
    process = python(DEAF, tmp_path)
    until(lambda: "up" in process.log.read_text())

    os.kill(process.supervisor_pid, signal.SIGKILL)

    until(lambda: not runs(process.pid))
    assert process.stop() == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_supervisor_stops_the_command(tmp_path: Path, until: Until, number: signal.Signals):
    process = python(QUIET_END, tmp_path)
    until(lambda: "up" in process.log.read_text())

    os.kill(process.supervisor_pid, number)

    assert process.wait(30) == 5
    process.stop()


def test_the_command_finds_no_descriptor_of_the_supervisor_and_default_signals(tmp_path: Path):
    code = (
        "import os, signal\n"
        "print(sorted(int(fd) for fd in os.listdir('/dev/fd'))[:-1])\n"
        "print([int(signal.getsignal(n)) for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)])"
    )
    process = python(code, tmp_path)

    assert process.wait(30) == 0
    process.stop()
    assert process.log.read_text().splitlines() == ["[0, 1, 2]", "[0, 0, 0]"]


def test_a_command_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(CannotStart, match=r"(?s)127.*cannot start /no/such/program"):
        supervised.run(["/no/such/program"], log=tmp_path / "log", timeout_s=30)


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path):
    with pytest.raises(CannotStart, match=r"longer than 0\.1 s"):
        supervised.run(["sleep", "120"], log=tmp_path / "log", timeout_s=0.1)


def test_a_large_log_is_set_aside(tmp_path: Path):
    (tmp_path / "log").write_bytes(b"x" * (9 << 20))

    supervised.run(["echo", "new"], log=tmp_path / "log", timeout_s=30)

    assert (tmp_path / "log").read_text() == "new\n"
    assert (tmp_path / "log.1").stat().st_size == 9 << 20


@pytest.mark.parametrize(
    "arguments",
    [
        ["--lifeline", "0"],
        ["--", "true"],
        ["--lifeline", "0", "--"],
        ["--lifeline", "x", "--", "true"],
        ["--lifeline", "0", "--wrong", "1", "--", "true"],
        ["--lifeline", "0", "--stop-signal", "KILL", "--", "true"],
        ["--lifeline", "999999", "--", "true"],
    ],
)
def test_bad_arguments_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(arguments) == 64
    assert "bad arguments" in capsys.readouterr().err


def test_the_module_runs_by_name_too(tmp_path: Path):
    lifeline, end = os.pipe()
    command = [sys.executable, "-m", "weft_servers.supervisor", "--lifeline", str(lifeline), "--", "sleep", "120"]
    with subprocess.Popen(command, pass_fds=[lifeline]) as supervisor:
        os.close(lifeline)
        os.close(end)

        assert supervisor.wait(30) == 128 + signal.SIGTERM


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_supervisor_stays_small(tmp_path: Path, until: Until):
    process = python(DEAF, tmp_path, grace_s=0.1)
    until(lambda: "up" in process.log.read_text())

    rollup = Path(f"/proc/{process.supervisor_pid}/smaps_rollup").read_text()
    [pss_kb] = [int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")]

    process.stop()
    assert pss_kb < 12 * 1024
