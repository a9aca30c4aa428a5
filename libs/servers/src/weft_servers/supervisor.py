"""The supervisor: runs a command and ends it when its own parent is gone.

    python -m weft_servers.supervisor --lifeline FD [--report FD] [--stop-signal NAME] [--grace S] -- COMMAND...

The parent keeps the other end of the lifeline, a pipe, open. When that closes, or on SIGTERM, SIGINT or
SIGHUP, the command gets the stop signal (TERM, INT or QUIT) and, if it is still there after the grace time,
SIGKILL. When the command ends the supervisor ends too, with its exit status (128 + number for a signal). A supervisor
that is killed takes the command along on Linux (PDEATHSIG); macOS has nothing like it.

It stays resident beside every server, so it imports as little as it can and runs as a script, without
site-packages.
"""

import os
import select
import signal
import sys
import time

_STOP_SIGNALS = {"TERM": signal.SIGTERM, "INT": signal.SIGINT, "QUIT": signal.SIGQUIT}
_WATCHED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1
_USAGE_ERROR, _CANNOT_START = 64, 127


class _Options:
    lifeline = -1
    report = -1
    stop_signal = signal.SIGTERM
    grace_s = 10.0
    command: tuple[str, ...] = ()


def main(arguments: list[str]) -> int:
    """Run the command to its end and return the exit status; see the module's docstring."""
    try:
        options = _parsed(arguments)
        for fd in (options.lifeline, options.report):
            if fd >= 0:
                os.set_inheritable(fd, False)
    except (ValueError, KeyError, IndexError, OSError) as e:
        print(f"supervisor: bad arguments {arguments}: {e!r}", file=sys.stderr)
        return _USAGE_ERROR
    wake, wake_end = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(wake_end, False)
    signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
    for each in _WATCHED:
        signal.signal(each, _noted)
    child = _started(options)
    if options.report >= 0:
        os.write(options.report, b"%d\n" % child)
        os.close(options.report)
    return _watched(child, wake, options)


def _noted(number: int, frame: object) -> None:
    """Do nothing: a signal without a handler would not be written to the wakeup pipe."""


def _parsed(arguments: list[str]) -> _Options:
    options = _Options()
    cut = arguments.index("--")
    options.command = tuple(arguments[cut + 1 :])
    flags = dict(zip(arguments[:cut:2], arguments[1:cut:2], strict=True))
    options.lifeline = int(flags.pop("--lifeline"))
    options.report = int(flags.pop("--report", "-1"))
    options.stop_signal = _STOP_SIGNALS[flags.pop("--stop-signal", "TERM")]
    options.grace_s = float(flags.pop("--grace", "10"))
    if flags or not options.command:
        raise ValueError(f"unknown: {sorted(flags)}" if flags else "no command")
    return options


def _started(options: _Options) -> int:
    supervisor = os.getpid()
    # A stop signal that reached the child while it still had the supervisor's handlers would be lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    if child := os.fork():
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
        return child
    try:
        signal.set_wakeup_fd(-1)
        for each in (*_WATCHED, signal.SIGPIPE):
            signal.signal(each, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
        if sys.platform == "linux":
            import ctypes  # here, so that only the child, which execs, pays for it

            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != supervisor:  # it died before the line above could take effect
                os._exit(_CANNOT_START)
        os.execvp(options.command[0], options.command)
    except OSError as e:
        os.write(2, f"supervisor: cannot start {options.command[0]}: {e.strerror}\n".encode())
    finally:
        os._exit(_CANNOT_START)


def _watched(child: int, wake: int, options: _Options) -> int:
    poll = select.poll()
    poll.register(options.lifeline, select.POLLIN)
    poll.register(wake, select.POLLIN)
    kill_at: float | None = None
    while True:
        left_ms = None if kill_at is None else max(0.0, kill_at - time.monotonic()) * 1000
        ready = {fd for fd, _ in poll.poll(left_ms)}
        stop = False
        if wake in ready:
            stop = any(number != signal.SIGCHLD for number in os.read(wake, 512))
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
        if options.lifeline in ready and not os.read(options.lifeline, 512):
            poll.unregister(options.lifeline)
            stop = True
        if stop and kill_at is None:
            os.kill(child, options.stop_signal)
            kill_at = time.monotonic() + options.grace_s
        elif kill_at is not None and time.monotonic() >= kill_at:
            os.kill(child, signal.SIGKILL)
            kill_at = None  # nothing more can be done than to wait for the kernel


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
