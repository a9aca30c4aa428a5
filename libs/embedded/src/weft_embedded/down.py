"""`weft down`: ends the mesh that runs on a state, and waits until all of it has ended. It always ends."""

import contextlib
import os
import signal
import time

from weft_client.failure import Exit, Failure
from weft_servers import state_lock

from weft_embedded import run_file, shutdown, state_processes
from weft_embedded.run_file import RunFile
from weft_embedded.state import State

_LEFTOVERS_S = 60.0
"""What a killed launcher left behind ends by itself; so long it may take."""


def is_running(state: State) -> bool:
    """Whether anything holds the state."""
    return state_lock.held(state.lock)


def run(state: State, *, timeout_s: float = shutdown.DOWN_S) -> str | None:
    """End the mesh of a state; what was ended by force, as a sentence, None where all ended in order.

    The launcher is asked, and what still runs after `timeout_s` seconds is killed: at most 10 s more.
    Raises Failure if none runs, or if the kernel holds what was killed.
    """
    record = run_file.read(state)
    if record is not None and record.alive():
        with contextlib.suppress(ProcessLookupError):
            os.kill(record.pid, signal.SIGTERM)
        if _until_ended(state, record, timeout_s):
            return None
        return _by_force(state, record, timeout_s)
    if not is_running(state):
        raise Failure(f"no mesh runs on {state.folder}", Exit.NOT_RUNNING)
    # Its launcher was killed: what it left ends by itself.
    bound = min(timeout_s, _LEFTOVERS_S)
    return None if _until_ended(state, None, bound) else _by_force(state, None, bound)


def _by_force(state: State, launcher: RunFile | None, waited_s: float) -> str:
    left = state_processes.find(state, launcher.pid if launcher is not None else None)
    state_processes.kill(left)
    if not _until_ended(state, launcher, shutdown.FORCED_S):
        numbers = ", ".join(str(each.pid) for each in left) or "none that this user may see"
        raise Failure(f"what runs on {state.folder} can't be ended: the system holds it (processes {numbers})")
    return f"{len(left)} processes did not end within {waited_s:g} s and were killed; {state.logs} tells what they did"


def _until_ended(state: State, launcher: RunFile | None, timeout_s: float) -> bool:
    # A launcher lets its lock go a moment before its process is gone.
    deadline = time.monotonic() + timeout_s
    while is_running(state) or (launcher is not None and launcher.alive()):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.1)
    return True
