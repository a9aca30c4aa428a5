"""Token buckets: how often each caller may try. A bucket fills again with time."""

from collections import OrderedDict

CALLERS = 4096
"""Kept at once; the longest unseen is forgotten."""


class TokenBuckets:
    """`size` tries at once, then one every `every` seconds. Time is an argument: monotonic seconds."""

    def __init__(self, size: int, every: float) -> None:
        self._size = size
        self._every = every
        self._spent: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, caller: str, now: float) -> float:
        """Seconds until the caller may try; 0: now."""
        spent = self._now_spent(caller, now)
        return 0.0 if spent <= self._size - 1 else (spent - self._size + 1) * self._every

    def spend(self, caller: str, now: float) -> None:
        """Count a try."""
        self._spent[caller] = self._now_spent(caller, now) + 1, now
        self._spent.move_to_end(caller)
        if len(self._spent) > CALLERS:
            self._spent.popitem(last=False)

    def _now_spent(self, caller: str, now: float) -> float:
        spent, at = self._spent.get(caller, (0.0, now))
        return max(0.0, spent - (now - at) / self._every)
