"""Starting a command under the supervisor, the handle on it, and on a server that runs so."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from weft_servers import supervisor
from weft_servers.state_lock import never

# Above the grace time: what a busy machine may need to run the few lines of the supervisor's own end.
_SUPERVISOR_MARGIN_S = 10.0
_LOOK_S = 0.2
_KEEP_LOG_BYTES = 8 << 20
_TAIL_BYTES = 4000


class CannotStart(RuntimeError):
    """A command could not be started, or ended before it was ready. The message has the log's last lines."""


class GivenUp(CannotStart):
    """Whoever asked for the start does not want it any more."""


class SupervisedProcess:
    """A command that runs under a supervisor. It ends when `stop` is called or when this process ends, however.

    `pid` is the command's own process. Not stopping it before the handle is dropped leaves it running.
    """

    def __init__(self, process: subprocess.Popen[bytes], pid: int, lifeline: int, grace_s: float, log: Path) -> None:
        self._supervisor = process
        self._lifeline = lifeline
        self._grace_s = grace_s
        self.pid = pid
        self.log = log

    @property
    def supervisor_pid(self) -> int:
        """The supervisor's process."""
        return self._supervisor.pid

    def poll(self) -> int | None:
        """Return None while it runs, else its exit status (128 + number if a signal ended it)."""
        return self._supervisor.poll()

    def wait(self, timeout_s: float) -> int:
        """Wait for its end and return the exit status.

        Raises:
            TimeoutError: it still runs after `timeout_s` seconds.
        """
        try:
            return self._supervisor.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"process {self.pid} still runs after {timeout_s:g} s") from None

    def kill(self) -> None:
        """End the command and its supervisor by force, at once and unasked."""
        for each in (self.pid, self._supervisor.pid):
            with contextlib.suppress(ProcessLookupError):
                if self._supervisor.poll() is None:
                    os.kill(each, signal.SIGKILL)

    def stop(self) -> int:
        """End the command and return its exit status; takes at most the grace time and 10 s.

        The stop signal first, SIGKILL after the grace time. Calling it again changes nothing.
        """
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        try:
            return self._supervisor.wait(self._grace_s + _SUPERVISOR_MARGIN_S)
        except subprocess.TimeoutExpired:
            # The supervisor itself hangs (stopped, or starved). Its death takes the command along on Linux.
            if sys.platform != "linux":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)
            self._supervisor.kill()
            return self._supervisor.wait(_SUPERVISOR_MARGIN_S)


class RunningServer:
    """A server that runs supervised. Use as a context manager, or call `stop`; it also ends with this process."""

    def __init__(self, process: SupervisedProcess) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """The server's own process."""
        return self._process.pid

    @property
    def supervisor_pid(self) -> int:
        """The supervisor's process."""
        return self._process.supervisor_pid

    def poll(self) -> int | None:
        """Return None while it runs, else its exit status (128 + number if a signal ended it)."""
        return self._process.poll()

    def stop(self) -> int:
        """End it by its stop signal, by SIGKILL after its grace time, and return its exit status."""
        return self._process.stop()

    def kill(self) -> None:
        """End it by force, at once."""
        self._process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def launch(
    command: Sequence[str],
    *,
    log: Path,
    stop_signal: str = "TERM",
    grace_s: float = 10.0,
    keep_fds: Sequence[int] = (),
    env: Mapping[str, str] | None = None,
    stdin: Path | None = None,
    start_timeout_s: float = 30.0,
) -> SupervisedProcess:
    """Start a command under the supervisor, in a session of its own, so that Ctrl-C reaches only the caller.

    Args:
        log: the file that gets its output; over 8 MiB it is set aside as `<name>.1` first.
        stop_signal: TERM, INT or QUIT: what asks the command to end.
        grace_s: seconds from the stop signal to SIGKILL.
        keep_fds: descriptors that supervisor and command inherit, such as that of a lock.
        env: the whole environment; None: that of this process.
        stdin: a file to read from; None: nothing.
        start_timeout_s: bound of the wait for the command's process number.

    Raises:
        CannotStart: the supervisor did not come up.
    """
    if log.exists() and log.stat().st_size > _KEEP_LOG_BYTES:
        os.replace(log, log.with_name(log.name + ".1"))
    lifeline, lifeline_end = os.pipe()
    report, report_end = os.pipe()
    # As a script and without site-packages: half a megabyte less, and no start-up hooks of the environment.
    arguments = [sys.executable, "-I", "-S", supervisor.__file__]
    arguments += ["--lifeline", str(lifeline), "--report", str(report_end)]
    arguments += ["--stop-signal", stop_signal, "--grace", str(grace_s), "--", *command]
    try:
        with (
            os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as out,
            open(stdin or os.devnull, "rb") as source,
        ):
            process = subprocess.Popen(
                arguments,
                stdin=source,
                stdout=out,
                stderr=out,
                env=env,
                pass_fds=(lifeline, report_end, *keep_fds),
                start_new_session=True,
            )
    except BaseException:
        os.close(lifeline_end)
        os.close(report)
        raise
    finally:
        os.close(lifeline)
        os.close(report_end)
    try:
        pid = int(_line(report, start_timeout_s) or 0)
    finally:
        os.close(report)
    supervised = SupervisedProcess(process, pid, lifeline_end, grace_s, log)
    if not pid:
        process.kill()
        supervised.stop()
        raise CannotStart(f"the supervisor of {command[0]} did not start within {start_timeout_s:g} s{tail(log)}")
    return supervised


def run(
    command: Sequence[str],
    *,
    log: Path,
    timeout_s: float,
    keep_fds: Sequence[int] = (),
    env: Mapping[str, str] | None = None,
    stdin: Path | None = None,
    given_up: Callable[[], bool] = never,
) -> None:
    """Run a command that ends by itself, under the supervisor. `given_up` is asked meanwhile; True ends it.

    Raises:
        CannotStart: it failed, or took longer than `timeout_s` seconds, or was given up.
    """
    supervised = launch(command, log=log, keep_fds=keep_fds, env=env, stdin=stdin, grace_s=2.0)
    deadline = time.monotonic() + timeout_s
    try:
        status = _waited(supervised, command[0], deadline, given_up)
    except TimeoutError:
        raise CannotStart(f"{command[0]} took longer than {timeout_s:g} s{tail(log)}") from None
    finally:
        supervised.stop()
    if status:
        raise CannotStart(f"{command[0]} ended with status {status}{tail(log)}")


def _waited(supervised: SupervisedProcess, name: str, deadline: float, given_up: Callable[[], bool]) -> int:
    while True:
        try:
            return supervised.wait(min(_LOOK_S, max(0.0, deadline - time.monotonic())))
        except TimeoutError:
            if given_up():
                raise GivenUp(f"{name} was given up") from None
            if time.monotonic() >= deadline:
                raise


def tail(*logs: Path) -> str:
    """Return the last lines of the logs for an error's message: ':' and the lines, or nothing."""
    lines: list[str] = []
    for log in logs:
        with contextlib.suppress(OSError), log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            lines += file.read().decode(errors="replace").splitlines()[-12:]
    return "".join(["; its log ends:", *(f"\n  {line}" for line in lines)]) if lines else ""


def _line(fd: int, timeout_s: float) -> bytes:
    """Read up to the end of a line, the end of the pipe or the time; what came."""
    got, deadline = b"", time.monotonic() + timeout_s
    while not got.endswith(b"\n"):
        ready, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
        if not ready or not (more := os.read(fd, 64)):
            break
        got += more
    return got
