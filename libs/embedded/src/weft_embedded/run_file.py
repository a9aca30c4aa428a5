"""The run file: what an `up` writes down for `status` and `down`, and how they find it alive."""

import json
import os
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from weft_embedded.state import State, read_json, write_private


@dataclass(frozen=True, slots=True)
class PartRow:
    """One process of the mesh as its launcher sees it."""

    name: str
    state: str
    """`starting`, `ready`, `restarting` or `stopped`."""
    pid: int | None
    restarts: int
    port: int | None
    log: str


@dataclass(frozen=True, slots=True)
class RunFile:
    """A running launcher and its parts."""

    pid: int
    started: float
    """When the launcher's process started, as the system tells it: with `pid` this names one process."""
    url: str
    since: float
    """Seconds since the epoch."""
    stage: str
    """`starting`, `ready` or `stopping`."""
    parts: tuple[PartRow, ...] = field(default=())

    def write(self, state: State) -> None:
        write_private(state.run_file, json.dumps(asdict(self), indent=1) + "\n")

    def alive(self) -> bool:
        """Whether that very process still runs."""
        return started_at(self.pid) == self.started


def new(url: str) -> RunFile:
    """The run file of this process."""
    pid = os.getpid()
    return RunFile(pid, started_at(pid) or 0.0, url, time.time(), "starting")


def read(state: State) -> RunFile | None:
    """What the state's last launcher wrote; None where there is nothing. It may be dead: see `alive`."""
    found: dict[str, Any] | None = read_json(state.run_file)
    if found is None:
        return None
    try:
        parts = tuple(PartRow(**row) for row in found.pop("parts"))
        return RunFile(**found, parts=parts)
    except (TypeError, KeyError):
        return None


def started_at(pid: int) -> float | None:
    """When a process started; None if there is none of this number, or only its remains."""
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None
