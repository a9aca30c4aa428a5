"""How much of this machine's memory others than its engine hosts hold."""

import contextlib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import psutil

_CGROUP = Path("/sys/fs/cgroup")


def used_by_others(hosts: Iterable[int]) -> int:
    """Bytes that can't be had back without ending something, less what these processes hold for themselves.

    Pages that only mirror a file count for nobody: the system takes them back when memory is short.
    Costs about 0.1 ms, and as much again for every four hosts.
    """
    return max(_used() - sum(_held(pid) for pid in hosts), 0)


def held_with_children(hosts: Iterable[int]) -> dict[int, int]:
    """Bytes that each of these processes and all that it started hold for themselves.

    Pages that mirror a file, such as weights, count for nobody. Takes some milliseconds: it looks through all
    processes once.
    """
    return {host: sum(_held(pid) for pid in pids) for host, pids in with_children(hosts).items()}


def with_children(hosts: Iterable[int]) -> dict[int, list[int]]:
    """Each of these processes with all that it started. Takes some milliseconds: it looks through all processes."""
    children: dict[int, list[int]] = {}
    for process in psutil.process_iter(["ppid"]):
        children.setdefault(process.info["ppid"], []).append(process.pid)

    def whole(pid: int) -> list[int]:
        return [pid, *(below for child in children.get(pid, ()) for below in whole(child))]

    return {pid: whole(pid) for pid in hosts}


def of_ours(processes: Mapping[int, int | None], hosts: Collection[int]) -> dict[int, int | None]:
    """Of the processes that hold something on a device, those that are hosts or were started by one."""
    return {pid: held for pid, held in processes.items() if _host_of(pid, hosts) is not None}


def by_host(processes: Mapping[int, int | None], hosts: Collection[int]) -> dict[int, int | None]:
    """What each host and all that it started hold on a device; None where the driver doesn't say it of one of them."""
    found: dict[int, int | None] = {}
    for pid, held in processes.items():
        if (host := _host_of(pid, hosts)) is not None:
            before = found.get(host, 0)
            found[host] = None if before is None or held is None else before + held
    return found


def _host_of(pid: int, hosts: Collection[int]) -> int | None:
    """The host that a process is, or that started it; None: it is no host's."""
    if pid in hosts:
        return pid
    try:
        return next((parent.pid for parent in psutil.Process(pid).parents() if parent.pid in hosts), None)
    except psutil.Error:
        return None


def _used() -> int:
    """Of the machine; of the control group where that has the lower limit."""
    memory = psutil.virtual_memory()
    with contextlib.suppress(OSError, ValueError):
        if int((_CGROUP / "memory.max").read_text()) < memory.total:
            lines = (line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
            stat = {name: int(value) for name, value in lines}
            return int((_CGROUP / "memory.current").read_text()) - stat["inactive_file"] - stat["active_file"]
    return int(memory.total - memory.available)


def _held(pid: int) -> int:
    try:
        info = psutil.Process(pid).memory_info()
    except psutil.Error:
        return 0
    return int(info.rss - getattr(info, "shared", 0))
