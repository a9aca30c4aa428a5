"""Why a host shuts down: its supervisor ended, the agent is silent or asks it to retire, or a signal came."""

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

from weft_engine.exit_codes import OTHER_FAILURE

STUCK_S: Final = 5.0
"""After its supervisor's end a host that does not get to its own end within this time is cut off."""

log = logging.getLogger("weft.engine")


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Why and how the host shuts down."""

    why: str
    exit_code: int
    finish_within_s: float
    """seconds that running requests may go on"""


class ShutdownTriggers:
    """Listens to all that may end a host; the first one counts, a later one may only hurry it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._first: asyncio.Future[Shutdown] = self._loop.create_future()
        self.hurry = asyncio.Event()
        """set when running requests get no more time"""

    async def wait(self) -> Shutdown:
        """The first reason to end."""
        return await asyncio.shield(self._first)

    def end(self, shutdown: Shutdown) -> None:
        """Give a reason to end."""
        if not self._first.done():
            log.info("ending", extra={"why": shutdown.why})
            self._first.set_result(shutdown)
        if shutdown.finish_within_s == 0:
            self.hurry.set()

    def on_signals(self, stop_within_s: float, *, supervised: bool) -> None:
        """SIGTERM retires within its bound; a second one ends at once.

        SIGINT too when run by hand. A supervised host ignores it: a terminal's Ctrl-C reaches the whole group, and
        stopping is its supervisor's business.
        """

        def terminate() -> None:
            again = self._first.done()
            self.end(Shutdown("told to stop", 0, 0 if again else stop_within_s))

        self._loop.add_signal_handler(signal.SIGTERM, terminate)
        if supervised:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        else:
            self._loop.add_signal_handler(signal.SIGINT, terminate)

    def on_lifeline(self, descriptor: int) -> None:
        """End when the pipe closes: nobody supervises this host any more."""

        def listen() -> None:
            with contextlib.suppress(OSError):
                os.set_blocking(descriptor, True)  # another process that shares the pipe may have changed that
                while os.read(descriptor, 512):
                    pass
            with contextlib.suppress(RuntimeError):  # the loop may be gone already
                self._loop.call_soon_threadsafe(self.end, Shutdown("its supervisor ended", OTHER_FAILURE, 0))
            threading.Event().wait(STUCK_S)
            os._exit(OTHER_FAILURE)  # an engine stuck in native code must not outlive its supervisor

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
                self.end(Shutdown(f"no agent watched for {without_agent_s:g} s", OTHER_FAILURE, 0))
            else:
                self._loop.call_later(tick_s, listen, alone_s)

        self._loop.call_later(tick_s, listen, 0.0)

    def on_retire(self, life: HostLife, retire_within_s: float) -> None:
        """End after the running requests when the agent asks to retire."""
        retire: Callable[[], None] = lambda: self.end(Shutdown("retired", 0, retire_within_s))  # noqa: E731
        life.on_retire = retire
