"""The bounds of a shutdown. What does not end by being asked is ended by force, and the launcher with it."""

import os
import threading
from collections.abc import Callable

from weft_client.failure import Exit

BOUND_S = 90.0
"""From the first signal to the launcher's end, whatever hangs: above what the parts are allowed one after the other."""
HURRIED_S = 15.0
"""The same from the second signal on."""
DOWN_S = BOUND_S + 10.0
"""`weft down` asks the launcher and waits for so long, then ends by force what is left."""
FORCED_S = 10.0
"""What was ended by force is gone within so long, or the kernel holds it."""


class KillTimer:
    """Ends everything by force when the time is up; a thread of its own, so whatever the rest waits for."""

    def __init__(self, kill: Callable[[], None], end: Callable[[int], None] = os._exit) -> None:
        """`kill` ends by force, unasked and without waiting; `end` this process."""
        self._kill = kill
        self._end = end

    def within(self, seconds: float) -> None:
        """End everything by force if this process still runs after so many seconds. The earliest call counts."""
        timer = threading.Timer(seconds, self._now)
        timer.daemon = True  # an orderly end doesn't wait for it
        timer.start()

    def _now(self) -> None:
        try:
            self._kill()
        finally:
            self._end(int(Exit.FAILED))
