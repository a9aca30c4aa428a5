"""The mesh's time, by what its gateway says in its answers: a node's own clock may be off by any amount."""

import time
from email.utils import parsedate_to_datetime


class MeshClock:
    """Good to about a second. Until the first answer it is the node's own clock."""

    def __init__(self) -> None:
        self.ahead = 0.0
        """Seconds that the mesh's clock is ahead of this machine's clock."""

    def now(self) -> float:
        """Seconds since the epoch, in the mesh."""
        return time.time() + self.ahead

    def heard(self, date: str | None) -> None:
        """Take the time from an answer's `Date`; none, or one that is no date, changes nothing."""
        try:
            self.ahead = parsedate_to_datetime(date or "").timestamp() + 0.5 - time.time()
        except (ValueError, TypeError, OverflowError):
            return
