"""What replicas and others hold of AMD's and Intel's devices, from the system's files to what is told."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from weft_contracts import subjects
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.values import Device, DeviceClaim, Hardware, Member
from weft_contracts.ids import ReplicaId
from weft_contracts.signals import MemorySaid
from weft_testing import HandLog
from weft_worker_agent.domain import pressure
from weft_worker_agent.domain.accelerators import Accelerator
from weft_worker_agent.inbound import pressure_loop
from weft_worker_agent.inbound.pressure_loop import PressureWatch
from weft_worker_agent.outbound.machine.accelerators.nvidia import Nvml
from weft_worker_agent.outbound.processes.host_entry import HostContext
from weft_worker_agent.outbound.processes.host_starts import HostStarts
from weft_worker_agent.outbound.processes.hosts import Hosts
from weft_worker_agent.outbound.processes.supervisor_client import SupervisorClient
from weft_worker_agent.projections.own_log import OwnLog

from .conftest import NODE
from .test_agent_drivers import OneHost


async def test_what_a_replica_and_others_hold_of_amds_card_is_read_from_the_systems_files(
    tmp_path: Path, hand_log: HandLog, assigned: Callable[..., Assigned], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pressure_loop, "_LOOK_S", 0.01)
    monkeypatch.setattr(pressure, "STAYS_S", 0.0)
    # given a replica that claims of AMD's card, one part of a card and a card of Intel's, all found by their tools
    address = "0000:03:00.0"
    card = Device(index=3, vendor="amd", name="a", memory=32 << 30, uuid="GPU-a", number=0, pci=address)
    part = Device(index=4, vendor="amd", name="b", memory=32 << 30, number=1, pci="0000:04:00.0")
    intels = Device(index=5, vendor="intel", name="c", memory=16 << 30, uuid="c", number=0, pci="0000:4d:00.0")
    found = (
        Accelerator("amd", 0, "a", 32 << 30, "GPU-a", pci=address),
        Accelerator("amd", 1, "b", 32 << 30, pci="0000:04:00.0"),
        Accelerator("amd", 2, "b", 32 << 30, pci="0000:04:00.0"),
        Accelerator("intel", 0, "c", 16 << 30, "c", pci="0000:4d:00.0"),
    )
    sibling = part.model_copy(update={"index": 6, "number": 2})
    hardware = Hardware(cpus=1, memory=1 << 30, disk_free=1, devices=(card, part, intels, sibling))
    own = OwnLog()
    claims = tuple(DeviceClaim(index=index, bytes=8 << 30) for index in (3, 4, 5))
    given = assigned().model_copy(update={"members": (Member(node=NODE, rank=0, devices=claims),)})
    own.fold(hand_log.given(subjects.node(NODE), given))
    own.fold(
        hand_log.given(subjects.machine(NODE), Reported(hardware=hardware, backends=(), builtins=(), agent_version="0"))
    )
    process = await asyncio.create_subprocess_exec("sleep", "60")
    # and the files of a system where its process has opened the card, its part and Intel's
    root = tmp_path / "root"
    for number, at in (("3", address), ("4", "0000:04:00.0"), ("5", "0000:4d:00.0")):
        for name in ("fd", "fdinfo"):
            (root / "proc" / str(process.pid) / name).mkdir(parents=True, exist_ok=True)
        (root / f"proc/{process.pid}/fd/{number}").symlink_to("/dev/dri/renderD128")
        driver, region = ("xe", "vram0") if number == "5" else ("amdgpu", "vram")
        text = f"drm-driver:\t{driver}\ndrm-client-id:\t1\ndrm-pdev:\t{at}\ndrm-resident-{region}:\t{number} MiB\n"
        (root / f"proc/{process.pid}/fdinfo/{number}").write_text(text)
    sysfs = root / "sys/bus/pci/devices" / address
    sysfs.mkdir(parents=True)
    (sysfs / "mem_info_vram_total").write_text(f"{32 << 30}\n")
    (sysfs / "mem_info_vram_used").write_text(f"{(10 << 30) + (3 << 20)}\n")
    context = HostContext(NODE, "127.0.0.1", None, time.monotonic, lambda: None)
    supervisor = cast(SupervisorClient, OneHost(process.pid))
    hosts = Hosts(HostStarts(context, supervisor, launches=tmp_path, python=""))
    try:
        await hosts.refresh()
        # when the agent looks
        watch = PressureWatch(NODE, own, hosts, Nvml(), lambda: None, lambda: found, root)
        watching = asyncio.create_task(watch.run())
        async with asyncio.timeout(30):
            while 3 not in watch.now or watch.now[3].settled is None:
                await asyncio.sleep(0.01)
        watching.cancel()
        # then it is told what the replica holds, of no part whose card another part is on, and what others do
        replica = ReplicaId("m-x-1")
        assert (
            MemorySaid(replica=replica, device=3, used=3 << 20),
            MemorySaid(replica=replica, device=5, used=5 << 20),
        ) == hosts.memory()
        assert 10 << 30 == watch.now[3].settled
        assert {3} == set(watch.now), "nothing says what is used of Intel's, or of a part"
    finally:
        await hosts.close()
        process.kill()
        await process.wait()
