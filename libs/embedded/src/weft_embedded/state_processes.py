"""The processes that a state has: those that hold one of its locks, and those below its launcher."""

from collections.abc import Iterable
from pathlib import Path

import psutil

from weft_embedded.state import State


def find(state: State, launcher: int | None) -> list[psutil.Process]:
    """All of this user's that belong to a state. `launcher`: its process, where it lives."""
    locks = {each.resolve() for each in (state.lock, state.nats / "lock", state.postgres / "lock")}
    found = {each.pid: each for each in psutil.process_iter() if _holds(each, locks)}
    if launcher is not None:
        try:
            family = [psutil.Process(launcher), *psutil.Process(launcher).children(recursive=True)]
        except psutil.Error:
            family = []
        found |= {each.pid: each for each in family}
    found.pop(psutil.Process().pid, None)
    return list(found.values())


def kill(processes: Iterable[psutil.Process]) -> None:
    """End them by force."""
    for each in processes:
        try:
            each.kill()  # psutil looks that it is still the same process
        except psutil.Error:
            continue


def _holds(process: psutil.Process, locks: set[Path]) -> bool:
    try:
        return any(Path(each.path) in locks for each in process.open_files())
    except (psutil.Error, OSError):
        return False  # a process of another user, or one that is gone
