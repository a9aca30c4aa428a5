"""CPU and memory of a mesh's processes, from the kernel. Not a script."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True, slots=True)
class Threads:
    """What an engine host's threads took between two looks: CPU seconds, and how often they gave the core up."""

    model: float
    """the busiest, which is llama.cpp's"""
    loop: float
    others: float
    """those that take the tokens from llama.cpp, gRPC's, llama.cpp's own for its port"""
    switches: int


Tasks = Mapping[str, tuple[float, int]]


def tasks_of(pid: int) -> Tasks:
    """CPU seconds and voluntary switches of each thread."""
    found: dict[str, tuple[float, int]] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            ran = int((task / "schedstat").read_text().split()[0])
            gave_up = (task / "status").read_text().split("\nvoluntary_ctxt_switches:")[1].split()[0]
        except (OSError, ProcessLookupError):
            continue  # it has ended
        found[task.name] = ran / 1e9, int(gave_up)
    return found


def between(pid: int, before: Tasks, after: Tasks) -> Threads:
    """What happened in between; threads that ended are not counted."""
    cpu = {task: after[task][0] - before.get(task, (0.0, 0))[0] for task in after}
    loop = cpu.pop(str(pid))
    model = max(cpu.values())
    switches = sum(after[task][1] - before.get(task, (0.0, 0))[1] for task in after)
    return Threads(model, loop, sum(cpu.values()) - model, switches)


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
