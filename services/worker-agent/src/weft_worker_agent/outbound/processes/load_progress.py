"""What an engine's processes do, seen from outside: one that loads or stands still may not answer."""

from dataclasses import dataclass

import psutil

from weft_worker_agent.domain.loading import STEP_BYTES
from weft_worker_agent.domain.stall import COMPUTES_FROM


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


@dataclass(frozen=True, slots=True)
class Activity:
    """What a process and its children have done so far."""

    processor_s: float
    """Seconds of processor time."""
    taken: int
    """See `taken_in`."""

    def works_since(self, before: "Activity", seconds: float) -> bool:
        """Whether that is more than waiting, after so many seconds: it computes, reads or takes memory."""
        return (
            self.processor_s - before.processor_s >= COMPUTES_FROM * seconds or self.taken >= before.taken + STEP_BYTES
        )


def activity(pid: int) -> Activity | None:
    """Of a process and its children; None where it can't be looked at. Takes some milliseconds, as above."""
    try:
        host = psutil.Process(pid)
        all_of_it = (host, *host.children(recursive=True))
        return Activity(sum(_time_of(process) for process in all_of_it), sum(_of(process) for process in all_of_it))
    except psutil.Error:
        return None


def _time_of(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
