"""How many requests a minute a server is sent."""

from collections import deque

MINUTE_S = 60.0


class MinuteRate:
    """Counts what was sent within the last minute."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._sent: deque[float] = deque(maxlen=most or 1)

    def take(self, now: float) -> bool:
        """Whether one more may be sent now; if so it counts."""
        if self._most is None:
            return True
        if len(self._sent) == self._most and now - self._sent[0] < MINUTE_S:
            return False
        self._sent.append(now)
        return True
