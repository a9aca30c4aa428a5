"""Whether an engine keeps to its claim of the machine's memory: seen when it doesn't for a while, and said once.

Nothing stops it. A limit on its address space (RLIMIT_AS) would: but engines map far more than they use, weights and
a device's memory, so it would end them for nothing; and a control group of one's own is rarely a worker's to make.
"""

from dataclasses import dataclass, replace

MARGIN_SHARE = 0.1
MARGIN_BYTES = 256 << 20
"""An estimate is no promise: less than this, or than a tenth of the claim, above it is nothing."""
STAYS_S = 10.0
"""How long it must hold more before that is said."""
GROWS = 1.5
"""By how much it must have grown to be said again."""


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """What one start of a replica holds of a device that it claims. Times are the agent's monotonic seconds."""

    device: int
    claimed: int
    """Bytes."""
    exceeds: int = 0
    """Bytes that it held, as far as it is worth telling; 0: it keeps to its claim."""
    above_since: float | None = None
    """Since when every look has found more than what is known or allowed."""

    @property
    def bound(self) -> float:
        """Bytes from which on there is something to tell."""
        allowed = self.claimed + max(MARGIN_BYTES, MARGIN_SHARE * self.claimed)
        return max(allowed, GROWS * self.exceeds)

    @property
    def excess(self) -> int:
        """Bytes beyond the claim."""
        return max(self.exceeds - self.claimed, 0)


def looked(use: ClaimUse, held: int, now: float) -> ClaimUse:
    """After one more look that found so many bytes held."""
    if held <= use.bound:
        return replace(use, above_since=None)
    if use.above_since is None:
        return replace(use, above_since=now)
    return use if now < use.above_since + STAYS_S else replace(use, exceeds=held, above_since=None)
