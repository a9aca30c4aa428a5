"""`weft down`: ends the mesh that runs on a state, and waits until all of it has ended."""

import contextlib
import os
import signal
import time

from weft_servers import state_lock

from weft_cli.embedded import run_file
from weft_cli.embedded.state import State
from weft_cli.failure import Exit, Failure

_STOP_S = 120.0
"""All the parts' bounds together are less."""
_LEFTOVERS_S = 60.0


def is_running(state: State) -> bool:
    """Whether anything holds the state."""
    if not state.lock.exists():
        return False
    try:
        state_lock.acquire(state.lock, "weft").release()
    except state_lock.Locked:
        return True
    return False


def run(state: State, *, timeout_s: float = _STOP_S) -> None:
    """End the mesh of a state. Raises Failure if none runs, or if it doesn't end in time."""
    record = run_file.read(state)
    if record is not None and record.alive():
        with contextlib.suppress(ProcessLookupError):
            os.kill(record.pid, signal.SIGTERM)
        if not _until_free(state, timeout_s):
            raise Failure(
                f"the mesh on {state.folder} still runs {timeout_s:g} s after it was told to end"
                f" (launcher: process {record.pid}); its log: {state.log('launcher')}"
            )
        return
    if not is_running(state):
        raise Failure(f"no mesh runs on {state.folder}", Exit.NOT_RUNNING)
    # Its launcher was killed: what it left ends by itself.
    if not _until_free(state, _LEFTOVERS_S):
        raise Failure(f"what a killed launcher left on {state.folder} still runs after {_LEFTOVERS_S:g} s")


def _until_free(state: State, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while is_running(state):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.1)
    return True
