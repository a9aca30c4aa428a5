"""How many processes the kernel has killed for lack of memory: in the worker's control group, and on the machine."""

import contextlib
from pathlib import Path

from weft_worker_agent.domain.process_ends import MemoryKills

_ROOT = Path("/")


def memory_kills(root: Path = _ROOT) -> MemoryKills:
    """The counts since the machine's start; 0 where the system doesn't tell. Takes a fifth of a millisecond."""
    return MemoryKills(_of_own_group(root), _count(root / "proc/vmstat"))


def _of_own_group(root: Path) -> int:
    """Hosts are in the group of the agent that looks. The counter of a group counts those below it, too."""
    mounted = root / "sys/fs/cgroup"
    with contextlib.suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, kind, path = line.split(":", 2)
            if "memory" in kind.split(","):
                for folder in (mounted / "memory" / path.lstrip("/"), mounted / "memory"):
                    if (folder / "memory.oom_control").exists():
                        return _count(folder / "memory.oom_control")
            if not kind:
                for folder in (mounted / path.lstrip("/"), mounted):
                    if (folder / "memory.events").exists():
                        return _count(folder / "memory.events")
    return 0


def _count(file: Path) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            name, _, number = line.partition(" ")
            if name == "oom_kill":
                return int(number)
    return 0
