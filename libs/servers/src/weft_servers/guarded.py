"""Starting a command under the guard, and the handle on it."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from weft_servers import guard

# Above the grace time: what a busy machine may need to run the few lines of the guard's own end.
_GUARD_MARGIN_S = 10.0
_KEEP_LOG_BYTES = 8 << 20
_TAIL_BYTES = 4000


class CannotStart(RuntimeError):
    """A command could not be started, or ended before it was ready. The message has the log's last lines."""


class Guarded:
    """A command that runs under a guard. It ends when `stop` is called or when this process ends, however.

    `pid` is the command's own process. Not stopping it before the handle is dropped leaves it running.
    """

    def __init__(self, process: subprocess.Popen[bytes], pid: int, lifeline: int, grace_s: float, log: Path) -> None:
        self._guard = process
        self._lifeline = lifeline
        self._grace_s = grace_s
        self.pid = pid
        self.log = log

    @property
    def guard_pid(self) -> int:
        """The guard's process."""
        return self._guard.pid

    def poll(self) -> int | None:
        """Return None while it runs, else its exit status (128 + number if a signal ended it)."""
        return self._guard.poll()

    def wait(self, timeout_s: float) -> int:
        """Wait for its end and return the exit status.

        Raises:
            TimeoutError: it still runs after `timeout_s` seconds.
        """
        try:
            return self._guard.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"process {self.pid} still runs after {timeout_s:g} s") from None

    def stop(self) -> int:
        """End the command and return its exit status; takes at most the grace time and 10 s.

        The stop signal first, SIGKILL after the grace time. Calling it again changes nothing.
        """
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        try:
            return self._guard.wait(self._grace_s + _GUARD_MARGIN_S)
        except subprocess.TimeoutExpired:
            # The guard itself hangs (stopped, or starved). Its death takes the command along on Linux.
            if sys.platform != "linux":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)
            self._guard.kill()
            return self._guard.wait(_GUARD_MARGIN_S)


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
) -> Guarded:
    """Start a command under the guard, in a session of its own, so that Ctrl-C reaches only the caller.

    Args:
        log: the file that gets its output; over 8 MiB it is set aside as `<name>.1` first.
        stop_signal: TERM, INT or QUIT: what asks the command to end.
        grace_s: seconds from the stop signal to SIGKILL.
        keep_fds: descriptors that guard and command inherit, such as a lock's.
        env: the whole environment; None: this process's.
        stdin: a file to read from; None: nothing.
        start_timeout_s: bound of the wait for the command's process number.

    Raises:
        CannotStart: the guard did not come up.
    """
    if log.exists() and log.stat().st_size > _KEEP_LOG_BYTES:
        os.replace(log, log.with_name(log.name + ".1"))
    lifeline, lifeline_end = os.pipe()
    report, report_end = os.pipe()
    # As a script and without site-packages: half a megabyte less, and no start-up hooks of the environment.
    arguments = [sys.executable, "-I", "-S", guard.__file__]
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
    guarded = Guarded(process, pid, lifeline_end, grace_s, log)
    if not pid:
        process.kill()
        guarded.stop()
        raise CannotStart(f"the guard of {command[0]} did not start within {start_timeout_s:g} s{tail(log)}")
    return guarded


def run(
    command: Sequence[str],
    *,
    log: Path,
    timeout_s: float,
    keep_fds: Sequence[int] = (),
    env: Mapping[str, str] | None = None,
    stdin: Path | None = None,
) -> None:
    """Run a command that ends by itself, under the guard.

    Raises:
        CannotStart: it failed, or took longer than `timeout_s` seconds.
    """
    guarded = launch(command, log=log, keep_fds=keep_fds, env=env, stdin=stdin, grace_s=2.0)
    try:
        status = guarded.wait(timeout_s)
    except TimeoutError:
        raise CannotStart(f"{command[0]} took longer than {timeout_s:g} s{tail(log)}") from None
    finally:
        guarded.stop()
    if status:
        raise CannotStart(f"{command[0]} ended with status {status}{tail(log)}")


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
