"""Looks at the memory of the machine and of its devices: what our replicas hold of it, and what others use."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft_contracts.facts.values import Device, Hardware, Vendor
from weft_contracts.ids import NodeId, ReplicaId
from weft_runtime.logs import get_logger

from weft_worker_agent.domain.accelerators import Accelerator
from weft_worker_agent.domain.device_addresses import alone
from weft_worker_agent.domain.device_report import by_uuid
from weft_worker_agent.domain.pressure import Pressure, looked, others_on
from weft_worker_agent.outbound.machine.accelerators.drm_files import card_memory, held_on_devices
from weft_worker_agent.outbound.machine.accelerators.nvidia import Nvml
from weft_worker_agent.outbound.machine.accelerators.tool import NoAnswer
from weft_worker_agent.outbound.machine.memory_use import by_host, of_ours, used_by_others, with_children
from weft_worker_agent.outbound.processes.hosts import Hosts
from weft_worker_agent.projections.own_log import OwnLog

_LOOK_S = 2.5
_AGAIN_S, _AGAIN_MOST_S = 60.0, 900.0
"""A driver that gave no answer is asked again after so long, ever later."""
_log: Any = get_logger("weft.pressure")


class PressureWatch:
    """Of the devices that the log knows of this node. Apple's and Ascend's are not looked at."""

    def __init__(
        self,
        node: NodeId,
        own: OwnLog,
        hosts: Hosts,
        nvml: Nvml,
        changed: Callable[[], None],
        accelerators: Callable[[], Sequence[Accelerator]] = tuple,
        root: Path = Path("/"),
    ) -> None:
        """`changed` is called when there is something to tell; `accelerators`: as they were found last; `root`: of
        the system's own files."""
        self._node = node
        self._own = own
        self._hosts = hosts
        self._nvml = nvml
        self._changed = changed
        self._accelerators = accelerators
        self._root = root
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
            await self._look_at_amd_and_intel(reported.hardware)
            if any(pressure.settled != before.get(index) for index, pressure in self._pressures.items()):
                self._changed()

    def _look_at_machine(self, hardware: Hardware) -> None:
        """The machine's memory counts as the processor's, also where an accelerator shares it. What a host holds
        beyond its claim is nobody's to place on, so it counts as others'."""
        for device in hardware.devices:
            if device.vendor == "cpu":
                self._looked(device, used_by_others(self._hosts.pids()) + self._hosts.excess)

    async def _look_at_nvidia(self, hardware: Hardware) -> None:
        known = {uuid: device for uuid, device in by_uuid(hardware).items() if _has_its_own(device, "nvidia")}
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

    async def _look_at_amd_and_intel(self, hardware: Hardware) -> None:
        """By the kernel's own files, which tell of AMD's cards also what is used of them in all."""
        at = alone(hardware, self._accelerators())
        by_index = {device.index: device for device in hardware.devices if _has_its_own(device, "amd", "intel")}
        known = {address: by_index[index] for address, index in at.items() if index in by_index}
        if not known:
            return
        pids, claimed = self._hosts.pids(), self._claimed()
        held = await asyncio.to_thread(lambda: held_on_devices(with_children(pids), self._root)) if pids else {}
        for address, device in known.items():
            ours = held.get(address, {})
            self._hosts.note_accelerator(device.index, self._claims_of(device.index), ours)
            memory = await asyncio.to_thread(card_memory, address, self._root)
            if memory is not None:
                total, used = memory
                others = others_on(total, total - used, ours, claimed=device.index in claimed)
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


def _has_its_own(device: Device, *vendors: Vendor) -> bool:
    """Whether a device is of these vendors and has memory that its driver can be asked about."""
    return device.vendor in vendors and not device.unified and not device.simulated
