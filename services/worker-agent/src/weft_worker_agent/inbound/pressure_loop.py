"""Looks at the memory of the machine and of NVIDIA's devices, so that the log can be told what others use of it."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

from weft_contracts.facts.values import Device, Hardware
from weft_contracts.ids import NodeId, ReplicaId
from weft_runtime.logs import get_logger

from weft_worker_agent.domain.device_report import by_uuid
from weft_worker_agent.domain.pressure import Pressure, looked, others_on
from weft_worker_agent.outbound.machine.accelerators.nvidia import Nvml
from weft_worker_agent.outbound.machine.accelerators.tool import NoAnswer
from weft_worker_agent.outbound.machine.memory_use import by_host, of_ours, used_by_others
from weft_worker_agent.outbound.processes.hosts import Hosts
from weft_worker_agent.projections.own_log import OwnLog

_LOOK_S = 2.5
_AGAIN_S, _AGAIN_MOST_S = 60.0, 900.0
"""A driver that gave no answer is asked again after so long, ever later."""
_log: Any = get_logger("weft.pressure")


class PressureWatch:
    """Of the devices that the log knows of this node. Other vendors' accelerators are not looked at."""

    def __init__(self, node: NodeId, own: OwnLog, hosts: Hosts, nvml: Nvml, changed: Callable[[], None]) -> None:
        """`changed` is called when there is something to tell."""
        self._node = node
        self._own = own
        self._hosts = hosts
        self._nvml = nvml
        self._changed = changed
        self._pressures: dict[int, Pressure] = {}
        self._ask_at, self._pause = 0.0, _AGAIN_S

    @property
    def now(self) -> Mapping[int, Pressure]:
        """By device, as it was at the last look."""
        return self._pressures

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await asyncio.sleep(_LOOK_S * random.uniform(0.8, 1.2))
            reported = self._own.part.reported
            if reported is None:
                continue
            before = {index: pressure.settled for index, pressure in self._pressures.items()}
            self._look_at_machine(reported.hardware)
            await self._look_at_nvidia(reported.hardware)
            if any(pressure.settled != before.get(index) for index, pressure in self._pressures.items()):
                self._changed()

    def _look_at_machine(self, hardware: Hardware) -> None:
        """The machine's memory counts as the processor's, also where an accelerator shares it. What a host holds
        beyond its claim is nobody's to place on, so it counts as others'."""
        for device in hardware.devices:
            if device.vendor == "cpu":
                self._looked(device, used_by_others(self._hosts.pids()) + self._hosts.excess)

    async def _look_at_nvidia(self, hardware: Hardware) -> None:
        known = {uuid: device for uuid, device in by_uuid(hardware).items() if _is_asked_about(device)}
        if not known or time.monotonic() < self._ask_at:
            return
        try:
            memories = await self._nvml.memory()
        except NoAnswer as error:
            _log.warning("the accelerators' memory is not known", reason=str(error), again_in=self._pause)
            self._ask_at = time.monotonic() + self._pause * random.uniform(0.8, 1.2)
            self._pause = min(self._pause * 2, _AGAIN_MOST_S)
            return
        self._pause = _AGAIN_S
        pids, claimed = frozenset(self._hosts.pids()), self._claimed()
        for memory in memories:
            device = known.get(memory.uuid)
            if device is not None:
                claims = self._claims_of(device.index)
                self._hosts.note_accelerator(device.index, claims, by_host(memory.processes, pids))
                ours = of_ours(memory.processes, pids)
                others = others_on(memory.total, memory.free, ours, claimed=device.index in claimed)
                if others is not None:
                    self._looked(device, others)

    def _looked(self, device: Device, others: int) -> None:
        before = self._pressures.get(device.index)
        if before is None or before.total != device.memory:
            before = Pressure(device.memory)
        self._pressures[device.index] = looked(before, others, time.monotonic())

    def _claims_of(self, device: int) -> dict[ReplicaId, int]:
        """Bytes that replicas claim of a device."""
        return {
            replica: claim.bytes
            for replica, assignment in self._own.part.assignments.items()
            for claim in assignment.fact.member(self._node).devices
            if claim.index == device
        }

    def _claimed(self) -> frozenset[int]:
        """Devices on which a host that lives has a claim."""
        living = {host.replica for host in self._hosts.view() if host.lives}
        assignments = self._own.part.assignments
        members = [assignments[replica].fact.member(self._node) for replica in living if replica in assignments]
        return frozenset(claim.index for member in members for claim in member.devices)


def _is_asked_about(device: Device) -> bool:
    return device.vendor == "nvidia" and not device.unified and not device.simulated
