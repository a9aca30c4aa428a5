"""The agent as its supervisor sees it: restarted when it ends, ever slower, never given up."""

import contextlib
import os
import signal
from collections.abc import Callable

FIRST_WAIT_S = 0.2
LONGEST_WAIT_S = 10.0
SOUND_AFTER_S = 30.0
"""An agent that lived this long is restarted at once when it ends."""
BAD_CONFIGURATION = 78
"""The exit status by which the agent says that another start would end the same way (sysexits' EX_CONFIG)."""


class AgentProcess:
    """Starts the agent and starts it again. Times are monotonic seconds."""

    def __init__(self, start: Callable[[], tuple[int, int]], log: Callable[..., None]) -> None:
        self._start = start
        self._log = log
        self._wait = FIRST_WAIT_S
        self._started_at = 0.0
        self._lifeline = -1
        self.pid = 0
        self.due: float | None = None
        """When it is to be started next; None: it runs, or it shall not run again."""
        self.gave_up: int | None = None
        """Its exit status, once it said that starting it again is in vain."""

    def start(self, now: float) -> None:
        self.due = None
        self._started_at = now
        self.pid, self._lifeline = self._start()

    def ended(self, code: int, now: float, *, again: bool) -> None:
        """Note its end and, unless everything ends, when it starts again."""
        lived = now - self._started_at
        self.pid = 0
        with contextlib.suppress(OSError):
            os.close(self._lifeline)
        if not again:
            return
        if code == BAD_CONFIGURATION:
            self.gave_up = code
            return
        if lived >= SOUND_AFTER_S:
            self._wait = FIRST_WAIT_S
        self.due = now + self._wait
        self._log("agent ended", status=code, lived_s=round(lived, 1), again_in_s=self._wait)
        self._wait = min(self._wait * 2, LONGEST_WAIT_S)

    def anew(self) -> None:
        """End it at once, as a crash would, so that another takes its place."""
        self._log("agent starts anew", pid=self.pid)
        self._wait = FIRST_WAIT_S
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def end(self, number: int = signal.SIGTERM) -> None:
        """Ask it to end; starting it again is off."""
        self.due = None
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
