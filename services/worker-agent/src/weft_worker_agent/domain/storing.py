"""Which of the files that lie here are put into the mesh's store next. Times are the agent's monotonic seconds."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from weft_worker_agent.domain.restarts import slow_wait_s

SPREAD_S: Final = 300.0
"""Over which nodes that all have a file since before, or have it from one another, look whether it is there: the first
puts it, and the others find it."""
MOST_TRIES: Final = 8
"""Of one file, some quarter of an hour: then it is left until this agent starts anew or fetches it anew."""


@dataclass(frozen=True, slots=True)
class Put:
    """One file's way into the store."""

    next_at: float
    failed: int = 0
    over: bool = False
    """Whether what lies there is known to be wrong."""
    ended: bool = False
    """It is there, or was given up."""


def puts_of(
    here: Iterable[str],
    fresh: Mapping[str, bool],
    before: Mapping[str, Put],
    now: float,
    chance: Callable[[], float],
) -> dict[str, Put]:
    """What is to be looked after: one for each file that lies here, by its checksum.

    `fresh`: those that came from elsewhere than from a node, with whether the store gave something else; they go at
    once. `chance`: between 0 and 1, for the others.
    """
    puts: dict[str, Put] = {}
    for checksum in here:
        if checksum in fresh:
            puts[checksum] = Put(now, over=fresh[checksum])
        else:
            puts[checksum] = before.get(checksum) or Put(now + SPREAD_S * chance())
    return puts


def next_put(puts: Mapping[str, Put], now: float) -> str | None:
    """The file to be put now: of those that are due what failed least, and then what waits longest."""
    due = (each for each, put in puts.items() if not put.ended and now >= put.next_at)
    return min(due, key=lambda each: (puts[each].failed, puts[each].next_at), default=None)


def after_put(put: Put) -> Put:
    """It is there."""
    return replace(put, ended=True)


def after_failed_put(put: Put, now: float, *, lasting: bool) -> Put:
    """One more try that failed. `lasting`: it would fail in the same way until somebody does something about it."""
    failed = put.failed + 1
    return replace(put, failed=failed, next_at=now + slow_wait_s(failed), ended=lasting or failed >= MOST_TRIES)
