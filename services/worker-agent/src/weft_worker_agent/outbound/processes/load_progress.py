"""What an engine's processes do, seen from outside: one that loads or stands still may not answer."""

import psutil


def taken_in(pid: int) -> int | None:
    """Bytes that a process and its children have read and hold in memory; None where it can't be looked at.

    Takes some milliseconds: it looks through all processes for children.
    """
    try:
        host = psutil.Process(pid)
        return sum(_of(process) for process in (host, *host.children(recursive=True)))
    except psutil.Error:
        return None


def _of(process: psutil.Process) -> int:
    try:
        taken = int(process.memory_info().rss)
        if hasattr(process, "io_counters"):
            counters = process.io_counters()
            taken += int(getattr(counters, "read_chars", counters.read_bytes))
    except psutil.Error:
        return 0
    return taken


def computed(pid: int) -> float | None:
    """Seconds of processor time that a process and its children have used; None where it can't be looked at.

    Takes some milliseconds, as above.
    """
    try:
        host = psutil.Process(pid)
        return sum(_time_of(process) for process in (host, *host.children(recursive=True)))
    except psutil.Error:
        return None


def _time_of(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
