"""The agent's end in order: drain, let the hosts end, let the log know. Every step is bounded."""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from typing import Any, Final

from weft_runtime.lifeline import lifeline_closed
from weft_runtime.logs import get_logger

from weft_worker_agent.domain.steering import TERM_TO_KILL_S
from weft_worker_agent.inbound.own_drain import OwnDrain
from weft_worker_agent.inbound.reporting_loop import Reporting
from weft_worker_agent.inbound.steering_loop import SteeringLoop
from weft_worker_agent.inbound.wake import Wake
from weft_worker_agent.outbound.processes.hosts import Hosts
from weft_worker_agent.projections.own_log import OwnLog

_LAST_WORDS_S: Final = 3.0
_log: Any = get_logger("weft.worker_agent")


class Stopping:
    """Waits to be told, by a signal or by the supervisor's end, and stops all."""

    def __init__(
        self,
        own: OwnLog,
        hosts: Hosts,
        steering: SteeringLoop,
        own_drain: OwnDrain,
        host_changed: Wake,
        reporting: Callable[[], Reporting | None],
        *,
        lifeline_fd: int | None,
        drain_s: float,
        stop_s: float,
    ) -> None:
        """`reporting`: what tells the log; None: nobody. `drain_s`, `stop_s`: what the drain and running requests
        have."""
        self._own = own
        self._hosts = hosts
        self._steering = steering
        self._own_drain = own_drain
        self._host_changed = host_changed
        self._reporting = reporting
        self._lifeline_fd = lifeline_fd
        self._drain_s = drain_s
        self._stop_s = stop_s
        self.begun = asyncio.Event()

    def told(self, number: int) -> None:
        """By its supervisor; SIGINT says that nothing is to be waited for."""
        self.begun.set()
        if number == signal.SIGINT:
            self._own_drain.hurry.set()
            if self._steering.grace_s is not None:
                self._steering.shut_down(0.0)

    async def run(self) -> None:
        """Wait for the stop, drain, then let the hosts end and the log know. Every step is bounded."""
        waits: list[asyncio.Task[Any]] = [asyncio.create_task(self.begun.wait())]
        if self._lifeline_fd is not None:
            waits.append(asyncio.create_task(lifeline_closed(self._lifeline_fd)))
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if waits[0].done() and self._drain_s:
            waits.append(asyncio.create_task(self._own_drain.drain(self._drain_s)))
            await asyncio.wait(waits[1:], return_when=asyncio.FIRST_COMPLETED)  # or the supervisor is gone
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        self.begun.set()
        grace = 0.0 if self._own_drain.hurry.is_set() else self._stop_s
        _log.info("worker stops", runs=sum(host.lives for host in self._hosts.view()), within=grace)
        self._steering.shut_down(grace)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace + TERM_TO_KILL_S + 1.0):
                while any(host.lives for host in self._hosts.view()):
                    await self._host_changed.wait(0.2)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                await self._last_words()
        _log.info("worker stopped", left=sum(host.lives for host in self._hosts.view()))

    async def _last_words(self) -> None:
        """Until the log knows of every end. Without a connection there is nobody to tell."""
        while (reporting := self._reporting()) is not None:
            reporting.wake.ring()
            if reporting.all_said or not self._own.may_decide:
                return
            await asyncio.sleep(0.05)
