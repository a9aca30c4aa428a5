"""Looks at the machine's memory, so that the log can be told what others use of it."""

import asyncio
import random
import time
from collections.abc import Callable

from weft_contracts.facts.values import Hardware

from weft_worker_agent.domain.pressure import Pressure, looked
from weft_worker_agent.outbound.hosts import Hosts
from weft_worker_agent.outbound.memory_use import used_by_others

_LOOK_S = 2.5
PROCESSOR = 0
"""The device whose memory is the machine's own."""


class PressureWatch:
    """The processor's device only: what else an accelerator holds is asked of its driver."""

    def __init__(self, hardware: Hardware, hosts: Hosts, changed: Callable[[], None]) -> None:
        """`changed` is called when there is something to tell."""
        memory = next(device.memory for device in hardware.devices if device.index == PROCESSOR)
        self._pressure = Pressure(memory)
        self._hosts = hosts
        self._changed = changed

    @property
    def now(self) -> Pressure:
        """As it was at the last look."""
        return self._pressure

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await asyncio.sleep(_LOOK_S * random.uniform(0.8, 1.2))
            before = self._pressure.settled
            self._pressure = looked(self._pressure, used_by_others(self._hosts.pids()), time.monotonic())
            if self._pressure.settled != before:
                self._changed()
