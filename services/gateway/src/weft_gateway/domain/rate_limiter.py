"""Rate limits of what may be asked without a good key: by address and in all. Beyond them the answer is 429, with when
to come again."""

from dataclasses import dataclass
from typing import Literal

from weft_gateway.domain.refused import Refused
from weft_gateway.domain.token_buckets import TokenBuckets

Limited = Literal["join", "proof", "key", "look"]
"""A registration; a token, a signature or a body of a node's route that is not good; a key that is not; the page's
files, those to install, and a browser's preflight."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """So many at once, then one more every so many seconds."""

    at_once: int
    every: float


LIMITS: dict[Limited, tuple[Allowance, Allowance]] = {
    "join": (Allowance(100, 0.1), Allowance(300, 1 / 30)),
    "proof": (Allowance(10, 2.0), Allowance(300, 0.1)),
    "key": (Allowance(100, 1.0), Allowance(1000, 0.05)),
    "look": (Allowance(300, 1 / 30), Allowance(3000, 1 / 300)),
}
"""Of one address, and of all together. A thousand nodes behind one address register within 90 s."""


class RateLimiter:
    """Counts for one gateway; nothing is kept of who stays below. Time is an argument: monotonic seconds."""

    def __init__(self) -> None:
        self._of_one = {what: TokenBuckets(one.at_once, one.every) for what, (one, _) in LIMITS.items()}
        self._of_all = {what: TokenBuckets(total.at_once, total.every) for what, (_, total) in LIMITS.items()}

    def count(self, what: Limited, address: str, now: float, sentence: str = "") -> None:
        """Count one attempt. Raises Refused, 429, where there were too many; its `sentence` then comes first."""
        of_one, of_all = self._of_one[what], self._of_all[what]
        if wait := of_one.wait(address, now):
            raise too_often(wait, sentence)
        if wait := of_all.wait("", now):
            raise too_often(wait, sentence)
        of_one.spend(address, now)
        of_all.spend("", now)


def too_often(wait: float, sentence: str = "") -> Refused:
    """429, with when to come again."""
    seconds = max(1, round(wait + 0.5))
    what = f"{sentence} Too many tries; try again in {seconds} s.".strip()
    return Refused(429, what, code="too_often", headers={"retry-after": str(seconds)})
