"""What others than our replicas use of a device's memory: told when it has moved and stayed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

TELLING_SHARE = 0.02
"""Of a device's memory: a smaller change is not worth an event."""
STAYS_S = 10.0
"""How long a change must last before it is told."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """What others use of one device's memory. Times are the agent's monotonic seconds."""

    total: int
    """Bytes of memory of the device."""
    settled: int | None = None
    """Bytes that others use, as far as it is worth telling; None until it is known."""
    moved_at: float | None = None
    """Since when every look has been well above or well below what is settled; None: the last was near."""
    above: bool = False
    """On which side those looks were."""


def tells(one: int, other: int, total: int) -> bool:
    """Whether two measures, in bytes, differ by more than the share that is worth an event."""
    return abs(one - other) > TELLING_SHARE * total


def looked(pressure: Pressure, others: int, now: float) -> Pressure:
    """The pressure after one more look that found others to use so many bytes."""
    if pressure.settled is not None and not tells(others, pressure.settled, pressure.total):
        return replace(pressure, moved_at=None)
    above = others > (pressure.settled or 0)
    if pressure.moved_at is None or above != pressure.above:
        return replace(pressure, moved_at=now, above=above)
    if now < pressure.moved_at + STAYS_S:
        return pressure
    return replace(pressure, settled=others, moved_at=None)


def others_on(total: int, free: int, ours: Mapping[int, int | None], *, claimed: bool) -> int | None:
    """Bytes of an accelerator's memory that others than our hosts hold; None where it can't be told.

    Args:
        total: of the device.
        free: of the device, as its driver says: what the driver keeps for itself is others'.
        ours: what each of our processes holds there; None where the driver doesn't say.
        claimed: whether a host that lives has a claim there. If then none of our processes is listed, it has
            taken nothing yet, or the driver counts processes in another namespace than our processes are in.
    """
    if any(held is None for held in ours.values()) or (claimed and not ours):
        return None
    return max(total - free - sum(held for held in ours.values() if held is not None), 0)
