"""Appends what the log lacks: the machine's report, what lies in its store, the runs' events.

Nothing is queued. What is missing is computed from what the log says and what is, appended under the guard of
its aggregate, and computed again once it has been folded. So an append whose answer was lost is never made
twice, and an outage of the log costs nothing but time.
"""

import asyncio
import random
from collections.abc import Iterator
from typing import Any

from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import FilesCame, FilesFailed, FilesGone, InstallFailed, PressureChanged, Reported
from weft_contracts.ids import CorrelationId, NodeId
from weft_contracts.subjects import Aggregate
from weft_eventlog import Conflict, LogFull, LogUnavailable, WorkerLog
from weft_runtime.logs import get_logger

from weft_worker_agent.domain.pressure import tells
from weft_worker_agent.domain.reports import missing_reports
from weft_worker_agent.inbound.machine_loop import MachineWatch
from weft_worker_agent.inbound.pressure_loop import PressureWatch
from weft_worker_agent.inbound.steering_loop import SteeringLoop
from weft_worker_agent.inbound.wake import Wake
from weft_worker_agent.outbound.machine.inventory import differs
from weft_worker_agent.outbound.processes.hosts import Hosts
from weft_worker_agent.projections.own_log import OwnLog

_IDLE_S = 1.0
_FOLD_S = 5.0
_APPEND_S = 20.0
_log: Any = get_logger("weft.reporting")


class Reporting:
    """What one connection's loops append. A new connection takes a new one."""

    def __init__(
        self,
        node: NodeId,
        log: WorkerLog,
        own: OwnLog,
        hosts: Hosts,
        steering: SteeringLoop,
        machine: MachineWatch,
        pressure: PressureWatch | None,
    ) -> None:
        self._node = node
        self._log = log
        self._own = own
        self._hosts = hosts
        self._steering = steering
        self._machine = machine
        self._pressure = pressure
        self._appending = asyncio.Lock()
        self.wake = Wake()

    async def run(self) -> None:
        """Report for ever."""
        while True:
            progress = False
            for commit in list(self._missing()):
                progress = await self.append(commit) or progress
            if not progress:
                await self.wake.wait(_IDLE_S)

    @property
    def all_said(self) -> bool:
        """Whether the log knows everything about this node's runs."""
        return self._own.may_decide and not list(self._missing())

    def _missing(self) -> Iterator[Commit]:
        if not self._own.may_decide or self._own.part.removed:
            return
        part = self._own.part
        if (fact := self._about_the_machine()) is not None:
            cause = part.approved or Cause(CorrelationId(f"report-{self._node}"))
            yield self.guarded(subjects.machine(self._node), fact, cause)
        shutdown = self._steering.grace_s is not None
        for report in missing_reports(part, self._hosts.view(), self._steering.tries, shutdown=shutdown):
            yield self.guarded(subjects.run(self._node, report.replica), report.fact, report.cause)

    def _about_the_machine(
        self,
    ) -> Reported | InstallFailed | FilesCame | FilesGone | FilesFailed | PressureChanged | None:
        part = self._own.part
        report = self._machine.report(part.reported)
        if report is not None and differs(report, part.reported):
            return report
        if part.reported is not None and (fault := self._machine.install_fault()) is not None:
            return fault
        if (moved := self._about_files()) is not None:
            return moved
        if (unfetched := self._machine.files_fault()) is not None:
            return unfetched
        if self._pressure is None or part.reported is None:
            return None
        known = {device.index for device in part.reported.hardware.devices}
        for device, pressure in self._pressure.now.items():
            told = part.pressure.get(device, 0)
            if device in known and pressure.settled is not None and tells(pressure.settled, told, pressure.total):
                return PressureChanged(device=device, bytes=pressure.settled)
        return None

    def _about_files(self) -> FilesCame | FilesGone | None:
        """What lies in the store and the log doesn't know, or the other way round."""
        fetches, told = self._hosts.starts.fetches, self._own.part.files
        if fetches is None:
            return None
        if (gone := next((files for files in told if files not in fetches.there), None)) is not None:
            return FilesGone(files=gone)
        came = next((each for each in fetches.there.items() if each[0] not in told), None)
        return FilesCame(files=came[0], bytes=came[1]) if came is not None else None

    def guarded(self, aggregate: Aggregate, fact: Fact, cause: Cause) -> Commit:
        """One fact as a commit that holds as long as nothing else has been written to its aggregate."""
        return Commit(aggregate, (fact,), self._own.guard(aggregate), cause)

    async def append(self, commit: Commit) -> bool:
        """Append under the guard of the commit's aggregate and wait until it is folded. False if it wasn't."""
        aggregate = commit.aggregate
        async with self._appending:
            if aggregate in self._own.suspects:
                return False
            try:
                sequence = await self._log.append(commit, timeout=_APPEND_S)
            except Conflict:
                _log.info("overtaken: what was to be said is looked at anew", aggregate=str(aggregate))
                await asyncio.sleep(random.uniform(0.05, 0.2))
                return False
            except (LogUnavailable, LogFull) as error:
                _log.warning("not appended yet", aggregate=str(aggregate), error=str(error))
                await asyncio.sleep(random.uniform(0.5, 1.5))
                return False
            except ValueError:  # it can't be written down: nothing else is to stay unsaid for it
                _log.exception("can't be said", aggregate=str(aggregate), fact=commit.facts[0].type)
                await asyncio.sleep(random.uniform(0.5, 1.5))
                return False
            _log.info("appended", aggregate=str(aggregate), fact=commit.facts[0].type, sequence=sequence)
            if not await self._own.reached(sequence, _FOLD_S):
                _log.warning("own event not folded yet", aggregate=str(aggregate), sequence=sequence)
                return False
            return True
