"""The agent's connection to the log, for as long as its credential lasts; then the next one."""

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

from weft_contracts.commit import Recorded
from weft_eventlog import WorkerLog
from weft_runtime import traces
from weft_runtime.health import Health
from weft_runtime.logs import get_logger

from weft_worker_agent.inbound.inspections import Inspections
from weft_worker_agent.inbound.machine_loop import MachineWatch
from weft_worker_agent.inbound.pressure_loop import PressureWatch
from weft_worker_agent.inbound.progress_loop import ProgressWatch
from weft_worker_agent.inbound.reporting_loop import Reporting
from weft_worker_agent.inbound.steering_loop import SteeringLoop
from weft_worker_agent.outbound.files.looks_elsewhere import LooksElsewhere
from weft_worker_agent.outbound.mesh import connection
from weft_worker_agent.outbound.mesh.credential import Credential
from weft_worker_agent.outbound.mesh.identity import NodeIdentity
from weft_worker_agent.outbound.mesh.joining import Joining
from weft_worker_agent.outbound.mesh.load_signal import signal_load
from weft_worker_agent.outbound.mesh.progress_signal import signal_progress
from weft_worker_agent.outbound.processes.hosts import Hosts
from weft_worker_agent.projections.own_log import OwnLog

_LOOK_S = 1.0
_log: Any = get_logger("weft.log_connection")


class LogConnection:
    """The connection to the log, made anew whenever it ends or its credential is renewed. What was folded stays."""

    def __init__(
        self,
        identity: NodeIdentity,
        joining: Joining,
        own: OwnLog,
        hosts: Hosts,
        steering: SteeringLoop,
        machine: MachineWatch,
        pressure: PressureWatch | None,
        progress: ProgressWatch,
        elsewhere: LooksElsewhere,
        health: Health,
        shown: Callable[[Credential], None],
    ) -> None:
        """`shown` is told every credential before it is used. `pressure`: None where it can't be told."""
        self._identity = identity
        self._joining = joining
        self._own = own
        self._hosts = hosts
        self._steering = steering
        self._machine = machine
        self._pressure = pressure
        self._progress = progress
        self._elsewhere = elsewhere
        self._health = health
        self._shown = shown
        self.reporting: Reporting | None = None
        """Of the connection that stands; None without one."""

    async def run(self) -> None:
        """Connect and follow for ever. Raises CannotJoin."""
        self._health.set_ready("log", False)
        credential = await self._joining.credential()
        while True:
            self._shown(credential)
            client = await self._connected(credential)
            if client is None:
                # The log is away, or this credential is not good there any more: the gateway knows.
                credential = await self._joining.fresh()
                continue
            try:
                renewed = await self._follow(client, credential)
            finally:
                self.reporting = None
                await connection.close(client)
            credential = renewed or await self._joining.credential()

    async def _connected(self, credential: Credential) -> Any:
        try:
            return await connection.opened(self._identity, credential)
        except Exception as error:  # only the log and the runtime know NATS's errors
            _log.warning("the log is not reached", url=credential.nats_url, error=repr(error))
            await self._joining.tell(
                f"the log at {credential.nats_url} is not reached: {error or type(error).__name__}"
            )
            return None

    async def _follow(self, client: Any, credential: Credential) -> Credential | None:
        """Fold and report over one connection, until it is closed (None) or its credential is renewed."""
        log = WorkerLog(client, self._identity.node, traces.appending if traces.on() else None)
        log.position = self._own.position
        node = self._identity.node
        reporting = Reporting(node, log, self._own, self._hosts, self._steering, self._machine, self._pressure)
        inspections = Inspections(node, self._own, self._hosts, self._elsewhere, reporting)
        self.reporting = reporting
        self._steering.on_turn = reporting.wake.ring

        def fold(commit: Recorded) -> None:
            self._own.fold(commit)
            if self._own.caught_up:
                self._wake_all(reporting, inspections)

        async def caught_up() -> None:
            await log.caught_up.wait()
            if not self._own.caught_up:
                _log.info("caught up", position=self._own.position, runs=len(self._own.part.assignments))
            self._own.caught_up = True
            self._health.set_ready("log", True)
            self._wake_all(reporting, inspections)

        endless = [
            log.run(fold),
            reporting.run(),
            inspections.run(),
            signal_load(client, self._identity.node, self._hosts.loads),
            signal_progress(client, self._identity.node, self._progress.now),
        ]
        tasks = [asyncio.create_task(each) for each in endless]
        catching_up = asyncio.create_task(caught_up())
        try:
            return await self._until_over(client, credential, tasks)
        finally:
            for task in (*tasks, catching_up):
                task.cancel()
            await asyncio.gather(*tasks, catching_up, return_exceptions=True)

    async def _until_over(
        self, client: Any, credential: Credential, tasks: list[asyncio.Task[None]]
    ) -> Credential | None:
        renewal: asyncio.Task[Credential] | None = None
        renew_at = _renew_at(credential)
        try:
            while not client.is_closed:
                done, _ = await asyncio.wait(
                    [*tasks, *([renewal] if renewal is not None else [])],
                    timeout=_LOOK_S,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                for task in done:
                    if renewal is not None and task is renewal:
                        fresh, renewal = renewal.result(), None
                        if fresh.jwt != credential.jwt:
                            return fresh
                        renew_at = _renew_at(fresh)  # the registry has made no newer one yet
                        continue
                    task.result()  # raises what ended it
                    raise RuntimeError("a loop without an end has ended")
                self._health.set("log", self._own.halted)
                if renewal is None and time.time() >= renew_at:
                    renewal = asyncio.create_task(self._joining.fresh())
            _log.warning("the log closed the connection: its credential has expired or was revoked")
            return None
        finally:
            if renewal is not None:
                renewal.cancel()

    def _wake_all(self, reporting: Reporting, inspections: Inspections) -> None:
        self._steering.wake.ring()
        reporting.wake.ring()
        inspections.ring()


def _renew_at(credential: Credential) -> float:
    """Half of its life, and up to a tenth later, so that nodes that came together don't return together."""
    return credential.renew_at + random.uniform(0, 0.1) * (credential.renew_at - credential.got_at)
