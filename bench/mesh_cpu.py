"""CPU and memory of a mesh's processes, from the kernel. Not a script."""

from collections.abc import Mapping
from dataclasses import dataclass

import psutil
from weft_testing.story import MeshUnderTest


@dataclass(frozen=True, slots=True)
class Look:
    """All the CPU seconds that a process has taken, its ended threads included, and its memory."""

    part: str
    cpu: float
    pss: int
    """Proportional set size in bytes: what is shared is divided by those who share it."""


def cpu_of(process: psutil.Process) -> float:
    """CPU seconds of a process, user and system."""
    times = process.cpu_times()
    return times.user + times.system


def look(mesh: MeshUnderTest) -> Mapping[psutil.Process, Look]:
    """Every process of a mesh by the part that it belongs to: the launcher, its children, and theirs."""
    found = mesh.run_file()
    parts = {int(part["pid"]): str(part["name"]) for part in found["parts"] if part["pid"]}
    launcher = psutil.Process(int(found["pid"]))
    every = {launcher, *launcher.children(recursive=True), *mesh.processes()}
    looks: dict[psutil.Process, Look] = {}
    for process in every:
        try:
            looks[process] = Look(_part(process, launcher, parts), cpu_of(process), process.memory_full_info().pss)
        except psutil.NoSuchProcess:
            continue
    return looks


def _part(process: psutil.Process, launcher: psutil.Process, parts: Mapping[int, str]) -> str:
    what = "launcher" if process == launcher else ""
    if "weft_engine" in " ".join(process.cmdline()):
        what = "engine host"
    for each in (process, *process.parents()):
        if each.pid in parts:
            return " ".join(filter(None, (parts[each.pid], what)))
    return what or f"other: {process.name()}"
