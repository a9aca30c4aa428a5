"""How often a run is started again: at most 3 times in 10 minutes, ever slower, then given up.

An engine that could not be installed, or a model that could not be fetched, is tried more often: an index and a hub
come back. One that the disk had no room for is
tried when there is room, and not before. One that lacks something elsewhere, such as a server that is away, is tried
for as long as it is assigned: nothing here would be mended by giving it up. Between such tries the pause grows to its
bound.
"""

from dataclasses import dataclass, replace

from weft_contracts.ids import Incarnation

from weft_worker_agent.domain.hosts import Host

WINDOW_S = 600.0
MAX_RESTARTS = 3
FIRST_WAIT_S = 0.5
WAIT_FACTOR = 4.0
MAX_INSTALLS = 14
"""Tries of one install, or of one fetch, under an assignment: some 45 minutes."""
FIRST_SLOW_WAIT_S, LONGEST_SLOW_WAIT_S = 1.0, 300.0
"""Between tries of an install or a fetch, and of what lacks something elsewhere."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """No further start under this assignment."""

    reason: str
    permanent: bool
    last_lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tries:
    """The starts of one assignment. Times are the agent's monotonic seconds."""

    epoch: int
    starts: tuple[float, ...] = ()
    """Those within the window."""
    total: int = 0
    next_at: float = 0.0
    given_up: GivenUp | None = None
    installs: int = 0
    """Installs and fetches that failed, one after the other."""
    room: int = 0
    """Bytes that must be free on the disk of engines before the next start; 0: it waits for no room."""
    outside: int = 0
    """Starts that lacked something elsewhere, one after the other."""
    counted: Incarnation | None = None
    """The host whose end was counted last."""


def started(tries: Tries, now: float) -> Tries:
    """One more start."""
    recent = tuple(at for at in tries.starts if at > now - WINDOW_S)
    return replace(tries, starts=(*recent, now), total=tries.total + 1)


def ended(tries: Tries, host: Host, now: float) -> Tries:
    """A host of this assignment ended without having been asked to."""
    assert host.end is not None
    if tries.counted == host.incarnation:
        return tries
    tries = replace(
        tries,
        counted=host.incarnation,
        installs=tries.installs + 1 if host.end.uninstalled or host.end.unfetched else 0,
        room=host.end.room,
        outside=tries.outside + 1 if host.end.outside else 0,
    )
    if tries.outside or 0 < tries.installs < MAX_INSTALLS:
        wait = slow_wait_s(1 if tries.room else tries.outside or tries.installs)
        return replace(tries, starts=tries.starts[:-1], next_at=now + wait)
    if tries.installs:
        return replace(tries, given_up=GivenUp(host.end.reason, False, host.end.last_lines))
    if host.given_up_for:
        return replace(tries, given_up=GivenUp(host.given_up_for, False, host.end.last_lines))
    if host.end.permanent or host.end.local:
        return replace(tries, given_up=GivenUp(host.end.reason, host.end.permanent, host.end.last_lines))
    recent = sum(at > now - WINDOW_S for at in tries.starts)
    if recent > MAX_RESTARTS:
        return replace(tries, given_up=GivenUp(host.end.reason, False, host.end.last_lines))
    return replace(tries, next_at=now + FIRST_WAIT_S * WAIT_FACTOR ** max(0, recent - 1))


def slow_wait_s(failed: int) -> float:
    """Seconds between the last of so many tries, as an install's or of what is away, and the next."""
    longest = LONGEST_SLOW_WAIT_S
    return longest if failed > MAX_INSTALLS else min(FIRST_SLOW_WAIT_S * WAIT_FACTOR ** (failed - 1), longest)
