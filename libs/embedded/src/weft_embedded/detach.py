"""`weft up --detach`: a launcher in the background, and the wait until its mesh is up."""

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable

from weft_client.failure import Exit, Failure

from weft_embedded import logs, shutdown
from weft_embedded.launcher import Options, command

BOUND_S = 600.0
"""All the bounds of a start together are less."""


def run(options: Options, say: Callable[[str], None], tell_secret: Callable[[str], None]) -> None:
    """Start a launcher in a session of its own and relay what it says until it is up; a secret by `tell_secret`.

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
    overdue = [
        threading.Timer(after_s, launcher.send_signal, (number,))
        for after_s, number in ((BOUND_S, signal.SIGTERM), (BOUND_S + shutdown.DOWN_S, signal.SIGKILL))
    ]
    for each in overdue:
        each.daemon = True
        each.start()
    try:
        with os.fdopen(report) as lines:
            for line in lines:
                said = json.loads(line)
                if "line" in said:
                    say(said["line"])
                elif "secret" in said:
                    tell_secret(said["secret"])
                elif "started" in said:
                    return
                elif "failed" in said:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        launcher.wait(shutdown.DOWN_S)  # so that the next `up` finds the state free
                    raise Failure(said["failed"])
    except KeyboardInterrupt:
        os.kill(launcher.pid, signal.SIGTERM)
        raise Failure("interrupted; the launcher ends what it had started", Exit.INTERRUPTED) from None
    finally:
        for each in overdue:
            each.cancel()
    status = launcher.wait(shutdown.DOWN_S)
    raise Failure(f"the launcher ended with status {status}{logs.tail(state.log('launcher'))}")
