"""Starts one child of the supervisor: in its own session, tied to the supervisor's life."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence

_PR_SET_PDEATHSIG = 1
CANNOT_START = 127
LIFELINE = "{lifeline}"
"""Stands in a command for the number of its lifeline's descriptor."""
SECRETS = "{secrets}"
"""Stands in a command for the number of the pipe by which its secrets come."""
_RESET = (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)


def start(
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    stdout: int | None = None,
    stderr: int | None = None,
    secrets: int | None = None,
) -> tuple[int, int]:
    """Start a command; its process number, and the end of its lifeline that the supervisor must hold open.

    Each child has a pipe of its own: what one does with its end (not to block on it, say) is nothing to others.

    Args:
        env: the whole environment; `WEFT_LIFELINE_FD` is added to it.
        stdout, stderr: descriptors for its output; None: the supervisor's own.
        secrets: the end of a pipe that it reads; None: it has none.

    A command that can't be executed ends with status 127 and a line on stderr. The supervisor has one thread, so
    there is nothing that a fork could leave half done.
    """
    supervisor = os.getpid()
    lifeline, lifeline_end = os.pipe()
    # Until the child has handlers of its own, a signal meant for it would be taken for one to the supervisor: both
    # share the pipe that the supervisor's handlers write to.
    signal.pthread_sigmask(signal.SIG_BLOCK, _RESET)
    try:
        pid = os.fork()
    finally:
        if os.getpid() == supervisor:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _RESET)
    if pid:
        os.close(lifeline)
        return pid, lifeline_end
    try:
        os.setsid()  # Ctrl-C at a terminal reaches the launcher alone
        signal.set_wakeup_fd(-1)
        for number in _RESET:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        _die_with(supervisor)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        if stdout is not None:
            os.dup2(stdout, 1)
        if stderr is not None:
            os.dup2(stderr, 2)
        os.set_inheritable(lifeline, True)
        numbers = {LIFELINE: str(lifeline)}
        if secrets is not None:
            os.set_inheritable(secrets, True)
            numbers[SECRETS] = str(secrets)
        command = [numbers.get(part, part) for part in argv]
        os.execvpe(argv[0], command, {**env, "WEFT_LIFELINE_FD": str(lifeline)})
    except (OSError, ValueError) as error:
        os.write(2, f"cannot start {argv[0]}: {error}\n".encode())
    finally:
        os._exit(CANNOT_START)


def _die_with(supervisor: int) -> None:
    """Be killed when the supervisor dies, even by kill -9. Linux only; elsewhere the lifeline must do."""
    if sys.platform != "linux":
        return
    import ctypes  # here, so that only the child, which execs, pays for it

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != supervisor:  # it died before the line above could take effect
        os._exit(CANNOT_START)
