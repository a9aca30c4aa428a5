"""What must happen to this node's engine hosts, so that what runs is what the log assigns."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from weft_contracts.facts.machine import Reported
from weft_contracts.ids import Incarnation, ReplicaId

from weft_worker_agent.domain.hosts import Host
from weft_worker_agent.domain.loading import LoadBounds, overdue
from weft_worker_agent.domain.own_part import PREPARES, Assignment, OwnPart
from weft_worker_agent.domain.restarts import Tries, ended, started
from weft_worker_agent.domain.stall import MOVE_S

TERM_TO_KILL_S = 5.0
FAILING_S = 5.0
"""A host that said it failed has this long to end by itself."""
SUPERSEDED_S = 0.0
"""A host whose assignment is no more: its group's epoch has ended, or its node was removed."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start a host for an assignment, under a new incarnation."""

    assignment: Assignment
    reported: Reported | None
    """What the node said last of itself: claims name its devices."""


@dataclass(frozen=True, slots=True)
class Retire:
    """Ask a host to take nothing new, finish what runs, and end."""

    incarnation: Incarnation
    within_s: float


@dataclass(frozen=True, slots=True)
class Signal:
    """End a host's process."""

    incarnation: Incarnation
    signal: Literal["TERM", "KILL"]
    why: str
    for_good: bool = False
    """No other start follows under its assignment: the reason is the run's failure."""
    at_once: bool = False
    """What runs there gets no time to finish: it is told, so that it goes on elsewhere."""


@dataclass(frozen=True, slots=True)
class Forget:
    """Nothing more is to be said of an ended host."""

    incarnation: Incarnation


Action = Start | Retire | Signal | Forget
_BOUNDS = LoadBounds()


@dataclass(frozen=True, slots=True)
class SteeringPlan:
    """What to do with the hosts, and which starts to remember."""

    actions: tuple[Action, ...]
    tries: Mapping[ReplicaId, Tries]


def steer(
    part: OwnPart,
    hosts: Iterable[Host],
    tries: Mapping[ReplicaId, Tries],
    now: float,
    *,
    shutdown_grace_s: float | None = None,
    bounds: LoadBounds = _BOUNDS,
    disk_free: int | None = None,
) -> SteeringPlan:
    """Compare what is assigned with what runs.

    Args:
        hosts: all that are known, living and ended.
        now: the agent's monotonic seconds.
        shutdown_grace_s: the worker itself ends, and running requests have this long; None: it goes on.
        bounds: how long an engine may load.
        disk_free: bytes on the disk of engines; None: not known.
    """
    known = list(hosts)
    kept = {r: _tries_of(a, tries) for r, a in part.assignments.items()}
    actions: list[Action] = []
    for host in known:
        assignment = _wanted(part, host)
        if host.end is not None:
            if assignment is not None and host.retire_at is None:
                kept[host.replica] = ended(kept[host.replica], host, now)
            if _all_said(part, host, kept.get(host.replica)):
                actions.append(Forget(host.incarnation))
        else:
            actions += _of_living(host, assignment, now, shutdown_grace_s, bounds)
    if shutdown_grace_s is None:
        occupied = {host.replica for host in known if host.lives}
        for replica, assignment in part.assignments.items():
            if replica in occupied or assignment.retirement is not None or part.removed:
                continue
            if _may_start(part, assignment, kept[replica], now, disk_free):
                actions.append(Start(assignment, part.reported))
                kept[replica] = started(kept[replica], now)
    return SteeringPlan(tuple(actions), kept)


def _tries_of(assignment: Assignment, tries: Mapping[ReplicaId, Tries]) -> Tries:
    before = tries.get(assignment.replica)
    if before is not None and before.epoch == assignment.epoch:
        return before
    if before is not None and assignment.is_rank:  # the next epoch of its group is another try of the same
        return replace(before, epoch=assignment.epoch)
    return Tries(assignment.epoch)


def _wanted(part: OwnPart, host: Host) -> Assignment | None:
    """The assignment that a host answers, if it still stands."""
    assignment = part.assignments.get(host.replica)
    if assignment is None or assignment.epoch != host.epoch or part.removed:
        return None
    return assignment


def _of_living(
    host: Host, assignment: Assignment | None, now: float, shutdown_grace_s: float | None, bounds: LoadBounds
) -> list[Action]:
    if host.retire_at is None:
        if shutdown_grace_s is not None:
            return [Retire(host.incarnation, shutdown_grace_s)]
        if assignment is None:
            return [Retire(host.incarnation, SUPERSEDED_S)]
        if assignment.retirement is not None:
            return [Retire(host.incarnation, assignment.retirement.deadline_s)]
    if host.answering is None and host.retire_at is None and host.term_at is None and assignment is not None:
        late = overdue(host, assignment.fact.spec.weights.weight_bytes, bounds, now)
        if late is not None:
            return [Signal(host.incarnation, "TERM", late, for_good=True)]
    if host.stalled and host.term_at is None and now >= host.stalled_at + MOVE_S:
        return [Signal(host.incarnation, "TERM", host.stalled, at_once=True)]
    if (why := _must_end(host, now, at_once=shutdown_grace_s == 0)) is None:
        return []
    if host.term_at is None:
        return [Signal(host.incarnation, "TERM", why)]
    if host.kill_at is None and now >= host.term_at + TERM_TO_KILL_S:
        return [Signal(host.incarnation, "KILL", why)]
    return []


def _must_end(host: Host, now: float, *, at_once: bool) -> str | None:
    """Why a living host must be ended by a signal; None if it need not."""
    if host.term_at is not None:
        return "it did not end when asked to"
    if host.retire_at is not None and at_once:
        return "its worker ends at once"
    if host.retire_at is not None and now >= host.retire_at + host.retire_within:
        return f"it did not finish within {host.retire_within:g} s"
    if host.failing_since is not None and now >= host.failing_since + FAILING_S:
        return "it failed and did not end by itself"
    return None


def _may_start(part: OwnPart, assignment: Assignment, tries: Tries, now: float, disk_free: int | None) -> bool:
    record = part.runs.get(assignment.replica)
    own = record if record is not None and record.epoch == assignment.epoch else None
    failed = own is not None and own.phase == "failed"
    if own is not None and assignment.is_rank and own.phase not in PREPARES:
        return False  # what ran of this epoch has ended: all ranks start anew under the next one
    has_room = disk_free is None or disk_free >= tries.room
    return not failed and tries.given_up is None and now >= tries.next_at and has_room


def _all_said(part: OwnPart, host: Host, tries: Tries | None) -> bool:
    """Whether the log needs nothing of an ended host any more."""
    record = part.runs.get(host.replica)
    if host.replica not in part.assignments:
        return True
    if tries is not None and tries.epoch == host.epoch and tries.given_up is not None:
        return record is not None and record.phase == "failed"
    if host.end is not None and (host.end.uninstalled or host.end.unfetched):
        # why is to be said, where the log knows that it was tried
        return record is None or record.epoch != host.epoch or record.phase not in PREPARES
    return record is not None and (record.incarnation != host.incarnation or not record.open)
