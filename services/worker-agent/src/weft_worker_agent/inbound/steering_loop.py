"""Looks at every change whether what runs is what the log assigns, and acts."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from weft_contracts.ids import ReplicaId
from weft_runtime.logs import get_logger

from weft_worker_agent.domain.loading import LoadBounds
from weft_worker_agent.domain.restarts import Tries
from weft_worker_agent.domain.steering import steer
from weft_worker_agent.inbound.wake import Wake
from weft_worker_agent.outbound.processes.hosts import Hosts
from weft_worker_agent.outbound.processes.supervisor_client import SupervisorClient
from weft_worker_agent.projections.own_log import OwnLog

_IDLE_S, _BUSY_S = 1.0, 0.2
_log: Any = get_logger("weft.steering")


class SteeringLoop:
    """The loop, and what it remembers: how often each run was started."""

    def __init__(self, own: OwnLog, hosts: Hosts, clock: Callable[[], float], bounds: LoadBounds) -> None:
        self._own = own
        self._hosts = hosts
        self._clock = clock
        self._bounds = bounds
        self.wake = Wake()
        self.on_turn: Callable[[], None] = lambda: None
        """Called after each turn: what it did may have to be reported."""
        self.tries: Mapping[ReplicaId, Tries] = {}
        self.grace_s: float | None = None
        """Set when the worker itself ends: seconds that running requests have."""

    async def run(self) -> None:
        """Steer for ever. Raises SupervisorGone."""
        while True:
            await self.turn()
            await self.wake.wait(_BUSY_S if self._pressing() else _IDLE_S)

    async def turn(self) -> None:
        """One look, and what follows from it."""
        if not self._own.may_decide and self.grace_s is None:
            return
        part, hosts, now = self._own.part, self._hosts.view(), self._clock()
        decided = steer(
            part,
            hosts,
            self.tries,
            now,
            shutdown_grace_s=self.grace_s,
            bounds=self._bounds,
            disk_free=self._hosts.starts.install_room if any(tries.room for tries in self.tries.values()) else None,
        )
        self.tries = decided.tries
        for action in decided.actions:
            _log.debug("steering", action=repr(action))
            await self._hosts.do(action)
        if decided.actions:
            self.on_turn()

    def shut_down(self, grace_s: float) -> None:
        """Start nothing more and end what runs within a bound."""
        self.grace_s = grace_s
        self.wake.ring()

    def _pressing(self) -> bool:
        """Whether some bound runs that a second's wait would stretch."""
        living = [host for host in self._hosts.view() if host.lives]
        if any(h.retire_at is not None or h.failing_since is not None or h.stalled or h.term_at for h in living):
            return True
        now = self._clock()
        return any(tries.next_at > now for tries in self.tries.values())


async def follow_supervisor(supervisor: SupervisorClient, hosts: Hosts, wake: Wake) -> None:
    """Take over every change that the supervisor tells. Raises SupervisorGone."""
    changed = Wake()

    async def listen() -> None:
        async for _ in supervisor.changes():
            changed.ring()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(listen())
        while True:
            await changed.wait(5.0)
            await hosts.refresh()
            wake.ring()
