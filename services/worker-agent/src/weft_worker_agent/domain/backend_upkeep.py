"""What is installed ahead of need and tried again, and which environments go. Times are the agent's monotonic seconds,
but for those since when something is unused."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from weft_contracts.backend_wishes import BackendWishes
from weft_contracts.facts.machine import InstallFailed
from weft_contracts.facts.node import BackendWanted
from weft_contracts.facts.values import InstalledBackend

from weft_worker_agent.domain.install_faults import InstallFault
from weft_worker_agent.domain.restarts import slow_wait_s

MOST_REASON = 2000


@dataclass(frozen=True, slots=True)
class AheadTries:
    """The tries of one wish."""

    wanted: BackendWanted
    failed: int = 0
    next_at: float = 0.0
    fault: InstallFault | None = None
    """Of the last."""
    told: bool = False
    """Whether the log knows of it."""

    @property
    def final(self) -> bool:
        """Whether another try would end the same way."""
        return self.fault is not None and (self.fault.permanent or self.fault.local)


def tries_of(wishes: BackendWishes, before: Mapping[str, AheadTries]) -> dict[str, AheadTries]:
    """What stands of earlier tries: nothing where something else is wanted, or the same was asked for anew."""
    kept: dict[str, AheadTries] = {}
    for key, wanted in wishes.wanted.items():
        tries = before.get(key)
        if tries is None or tries.wanted != wanted or (tries.told and key not in wishes.faults):
            tries = AheadTries(wanted)
        kept[key] = replace(tries, told=key in wishes.faults)
    return kept


def after_failure(tries: AheadTries, fault: InstallFault, now: float) -> AheadTries:
    """One more try that failed."""
    failed = tries.failed + 1
    return replace(tries, failed=failed, fault=fault, next_at=now + slow_wait_s(1 if fault.room else failed))


def is_due(tries: AheadTries, now: float, disk_free: int | None) -> bool:
    """Whether it is to be tried now. What the disk had no room for is tried when it has."""
    room = tries.fault.room if tries.fault is not None else 0
    return not tries.final and now >= tries.next_at and (disk_free is None or disk_free >= room)


def untold_fault(wishes: BackendWishes, tries: Mapping[str, AheadTries]) -> InstallFailed | None:
    """What the log doesn't know yet of why something can't be installed; the same reason is said once."""
    for key, each in tries.items():
        if each.fault is None:
            continue
        wanted = each.wanted
        fact = InstallFailed(
            engine=wanted.engine,
            vendor=wanted.variant.vendor,
            recipe=wanted.variant.digest,
            reason=each.fault.reason[:MOST_REASON],
            final=each.final,
        )
        if wishes.wanted.get(key) == wanted and wishes.faults.get(key) != fact:
            return fact
    return None


def removable(
    wishes: BackendWishes,
    there: Iterable[InstalledBackend],
    needed: Collection[str],
    now: float,
    keep_s: float,
) -> list[str]:
    """Environments that may go, by name.

    Args:
        there: as they are now.
        needed: names that assignments or wishes need.
        now: seconds since the epoch.
        keep_s: how long one that nothing uses stays.
    """
    found: list[str] = []
    for each in there:
        at_once = wishes.retired.get(each.name)
        if at_once is None or each.unused_since is None or each.name in needed:
            continue
        if at_once or now - each.unused_since >= keep_s:
            found.append(each.name)
    return found
