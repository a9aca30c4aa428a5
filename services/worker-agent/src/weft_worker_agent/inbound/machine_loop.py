"""Finds out what the machine has, beside all else that the agent does: a driver that hangs delays nothing."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from weft_contracts.facts.machine import FilesFailed, InstallFailed, Reported
from weft_runtime.logs import get_logger

from weft_worker_agent.domain.accelerators import Accelerator, Findings, Look, together
from weft_worker_agent.domain.device_report import Use, told

_AGAIN_S, _AGAIN_MOST_S = 60.0, 900.0
"""A driver that gave no answer is asked again after so long, ever later."""
_log: Any = get_logger("weft.machine")


class MachineWatch:
    """What this node is to report of its machine."""

    def __init__(
        self,
        base: Reported,
        use: Use,
        search: Callable[[], Awaitable[tuple[Look, ...]]],
        changed: Callable[[], None],
    ) -> None:
        """`base` lacks the accelerators; `search` asks for them; `changed` is called when there is news."""
        self._base = base
        self._use = use
        self._search = search
        self._changed = changed
        self._findings: Findings | None = None
        self.install_fault: Callable[[], InstallFailed | None] = lambda: None
        """What is to be said of an engine that can't be installed ahead of need."""
        self.files_fault: Callable[[], FilesFailed | None] = lambda: None
        """What is to be said of files that can't be fetched ahead of need."""

    @property
    def accelerators(self) -> Sequence[Accelerator]:
        """As they were found last; none while it is not known what there is, and none that are made up."""
        return self._findings.accelerators if self._findings is not None else ()

    def rebase(self, base: Reported) -> None:
        """Something else than the accelerators is otherwise now: an engine was installed."""
        self._base = base
        self._changed()

    def report(self, before: Reported | None) -> Reported | None:
        """The report, given the one that the log has; None while it is not known what there is."""
        if self._findings is None:
            return None
        return told(self._base, self._findings, self._use, before)

    async def run(self) -> None:
        """Look once, and for ever as long as a driver gives no answer."""
        pause = _AGAIN_S
        while True:
            await self._look()
            if self._findings is not None and not self._findings.silent:
                await asyncio.Event().wait()
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))
            pause = min(pause * 2, _AGAIN_MOST_S)

    async def _look(self) -> None:
        findings = together(() if self._use.simulated else await self._search())
        for note in findings.notes:
            _log.warning("accelerators are not known", reason=note)
        if findings != self._findings:
            names = [one.name for one in findings.accelerators]
            _log.info("machine looked at", accelerators=names, used=len(self._use.choice.of(findings.accelerators)))
            self._findings = findings
            self._changed()
