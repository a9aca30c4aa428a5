"""How an engine's process ended, as a sentence."""

import signal
from dataclasses import dataclass

from weft_worker_agent.domain.last_lines import telling


@dataclass(frozen=True, slots=True)
class MemoryKills:
    """Processes that the kernel killed for lack of memory."""

    own: int = 0
    """In the worker's control group, whose limit it met."""
    machine: int = 0
    """On the whole machine, those included."""

    def since(self, before: "MemoryKills") -> "MemoryKills":
        """Those that came after an earlier count."""
        return MemoryKills(self.own - before.own, self.machine - before.machine)


NONE = MemoryKills()


def sentence_of(
    exit_code: int | None, said: str, last_words: str, kills: MemoryKills = NONE, *, by_us: bool = False
) -> str:
    """Why a host ended: what it said, else how its process ended, with its last line of stderr.

    Args:
        kills: what the kernel killed for memory while it ended. Which process it was, the kernel tells nobody but its
            own log, so that is said only as far as it is known.
        by_us: the worker itself ended it by the signal.
    """
    if said:
        return said
    how = "the engine's process ended"
    if exit_code is not None:
        how = f"the engine's process {_ending(exit_code, kills, by_us=by_us)}"
    words = telling(last_words)
    return f"{how}; its last words: {words}" if words else how


def _ending(exit_code: int, kills: MemoryKills, *, by_us: bool) -> str:
    if exit_code == -signal.SIGKILL and not by_us:
        if kills.own > 0:
            return "was killed by the kernel for lack of memory (SIGKILL): its worker's control group is at its limit"
        return f"was killed by SIGKILL, not by its worker{_meanwhile(kills)}"
    how = f"was killed by {_name(-exit_code)}" if exit_code < 0 else f"ended with status {exit_code}"
    return how if by_us else f"{how}{_meanwhile(kills)}"


def _meanwhile(kills: MemoryKills) -> str:
    number, where = (kills.own, "of this worker") if kills.own > 0 else (kills.machine, "on this machine")
    if number <= 0:
        return ""
    return f"; meanwhile the kernel killed {number} process{'es' if number > 1 else ''} {where} for lack of memory"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
