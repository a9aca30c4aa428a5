"""`weft up --detach`: a launcher in the background, and the wait until its mesh is up."""

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable

from weft_cli.embedded import logs
from weft_cli.embedded.launcher import Options, command
from weft_cli.failure import Exit, Failure

_BOUND_S = 600.0
"""All the bounds of a start together are less."""
_STOP_S = 120.0


def run(options: Options, say: Callable[[str], None]) -> None:
    """Start a launcher in a session of its own and relay what it says until it is up.

    Its output goes to the log `launcher` of the state, and after the start only there.

    Raises:
        Failure: the mesh did not come up; the launcher has ended then.
    """
    state = options.state
    state.prepare()
    report, report_end = os.pipe()
    log = logs.open_for_append(state.log("launcher"))
    try:
        launcher = subprocess.Popen(
            command(options, report_end),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(report_end,),
            start_new_session=True,
        )
    finally:
        os.close(log)
        os.close(report_end)
    overdue = threading.Timer(_BOUND_S, os.kill, (launcher.pid, signal.SIGTERM))
    overdue.daemon = True
    overdue.start()
    try:
        with os.fdopen(report) as lines:
            for line in lines:
                said = json.loads(line)
                if "line" in said:
                    say(said["line"])
                elif "started" in said:
                    return
                elif "failed" in said:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        launcher.wait(_STOP_S)  # so that the next `up` finds the state free
                    raise Failure(said["failed"])
    except KeyboardInterrupt:
        os.kill(launcher.pid, signal.SIGTERM)
        raise Failure("interrupted; the launcher ends what it had started", Exit.INTERRUPTED) from None
    finally:
        overdue.cancel()
    status = launcher.wait(_STOP_S)
    raise Failure(f"the launcher ended with status {status}{logs.tail(state.log('launcher'))}")
