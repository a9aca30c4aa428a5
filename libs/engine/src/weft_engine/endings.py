"""Why a host ends: its keeper's end, silence of the agent, a signal, the agent's wish."""

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from weft_dataplane import HostLife

STUCK_S: Final = 5.0
"""After its keeper's end a host that does not get to its own end within this time is cut off."""

OTHER_FAILURE: Final = 1

log = logging.getLogger("weft.engine")


@dataclass(frozen=True, slots=True)
class Ending:
    """Why and how the host ends."""

    why: str
    exit_code: int
    finish_within_s: float
    """how long running requests may go on"""


class Endings:
    """Listens to all that may end a host; the first one counts, a later one may only hurry it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._first: asyncio.Future[Ending] = self._loop.create_future()
        self.hurry = asyncio.Event()
        """set when running requests get no more time"""

    async def wait(self) -> Ending:
        """The first reason to end."""
        return await asyncio.shield(self._first)

    def end(self, ending: Ending) -> None:
        """Give a reason to end."""
        if not self._first.done():
            log.info("ending", extra={"why": ending.why})
            self._first.set_result(ending)
        if ending.finish_within_s == 0:
            self.hurry.set()

    def on_signals(self, stop_within_s: float, *, kept: bool) -> None:
        """SIGTERM retires within its bound; a second one ends at once.

        SIGINT too when run by hand. A kept host ignores it: a terminal's Ctrl-C reaches the whole group, and
        stopping is its keeper's business.
        """

        def terminate() -> None:
            again = self._first.done()
            self.end(Ending("told to stop", 0, 0 if again else stop_within_s))

        self._loop.add_signal_handler(signal.SIGTERM, terminate)
        if kept:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        else:
            self._loop.add_signal_handler(signal.SIGINT, terminate)

    def on_lifeline(self, descriptor: int) -> None:
        """End when the pipe closes: nobody keeps this host any more."""

        def listen() -> None:
            with contextlib.suppress(OSError):
                os.set_blocking(descriptor, True)  # who shares the pipe may have changed that
                while os.read(descriptor, 512):
                    pass
            with contextlib.suppress(RuntimeError):  # the loop may be gone already
                self._loop.call_soon_threadsafe(self.end, Ending("its keeper ended", OTHER_FAILURE, 0))
            threading.Event().wait(STUCK_S)
            os._exit(OTHER_FAILURE)  # an engine stuck in native code must not outlive its keeper

        threading.Thread(target=listen, name="lifeline", daemon=True).start()

    def on_silence(self, life: HostLife, without_agent_s: float) -> None:
        """End when no agent watches for so long.

        Only time in which the loop ran counts: an engine that holds the process while it loads must not find
        itself alone afterwards.
        """
        tick_s = min(1.0, without_agent_s)

        def listen(alone_s: float) -> None:
            alone_s = 0.0 if life.watchers else alone_s + tick_s
            if alone_s >= without_agent_s:
                self.end(Ending(f"no agent watched for {without_agent_s:g} s", OTHER_FAILURE, 0))
            else:
                self._loop.call_later(tick_s, listen, alone_s)

        self._loop.call_later(tick_s, listen, 0.0)

    def on_retire(self, life: HostLife, retire_within_s: float) -> None:
        """End after the running requests when the agent asks to retire."""
        retire: Callable[[], None] = lambda: self.end(Ending("retired", 0, retire_within_s))  # noqa: E731
        life.on_retire = retire
