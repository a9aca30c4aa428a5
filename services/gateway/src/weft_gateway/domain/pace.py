"""What drips, told from what is slow: by the bytes that come while somebody waits for them."""

from typing import Final

LEAST: Final = 1024.0
"""Bytes a second."""
OVER_S: Final = 60.0


class Pace:
    """Of one end of one transfer. Time in which nobody waits for that end doesn't count."""

    def __init__(self, least: float = LEAST, over_s: float = OVER_S) -> None:
        """`least`: bytes a second, asked for anew whenever it was waited for `over_s` seconds."""
        self.least = least
        self._over_s = over_s
        self._waited_s = 0.0
        self._came = 0

    def drips(self, waited_s: float, came: int) -> bool:
        """Whether this was the last straw: so many bytes more came, after so much more waiting."""
        self._waited_s += waited_s
        self._came += came
        if self._waited_s < self._over_s:
            return False
        slow = self._came < self.least * self._waited_s
        self._waited_s, self._came = 0.0, 0
        return slow
