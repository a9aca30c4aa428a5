"""Drivers and tools that answer, hang, crash or talk nonsense: real processes, with stand-ins for what they ask."""

import asyncio
import os
import stat
import sys
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import cast

import psutil
import pytest
from weft_contracts import subjects
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.values import Device, DeviceClaim, Hardware, Member
from weft_contracts.ids import ReplicaId
from weft_contracts.signals import MemorySaid
from weft_testing import HandLog
from weft_worker_agent.inbound import pressure_loop
from weft_worker_agent.inbound.pressure_loop import PressureWatch
from weft_worker_agent.outbound.machine.accelerators import amd, intel, tool, vulkan
from weft_worker_agent.outbound.machine.accelerators.nvidia import Nvml
from weft_worker_agent.outbound.machine.accelerators.search import search
from weft_worker_agent.outbound.machine.accelerators.tool import NoAnswer
from weft_worker_agent.outbound.machine.accelerators.unified import Board
from weft_worker_agent.outbound.processes.host_entry import HostContext
from weft_worker_agent.outbound.processes.host_starts import HostStarts
from weft_worker_agent.outbound.processes.hosts import Hosts
from weft_worker_agent.outbound.processes.supervisor_client import SupervisedHost, SupervisorClient
from weft_worker_agent.projections.own_log import OwnLog

from .conftest import NODE

BINDINGS = """
class NVMLError(Exception): pass
class _Of:
    def __init__(self, **fields): self.__dict__.update(fields)
def _unsupported(*_): raise NVMLError("Not Supported")
def nvmlInit(): pass
def nvmlSystemGetDriverVersion(): return b"580.95.05"
def nvmlDeviceGetCount(): return 3
def nvmlDeviceGetHandleByIndex(number):
    if number == 2: raise NVMLError("GPU is lost")
    return number
def nvmlDeviceGetMigMode(handle): return [int(handle == 1), 0]
def nvmlDeviceGetMaxMigDeviceCount(handle): return 7
def nvmlDeviceGetMigDeviceHandleByIndex(handle, part):
    if part > 1: raise NVMLError("Not Found")
    return f"MIG {part}"
def nvmlDeviceGetName(handle): return "NVIDIA H100 80GB HBM3" if handle == 0 else "NVIDIA H100 MIG 3g.40gb"
def nvmlDeviceGetUUID(handle): return "GPU-0" if handle == 0 else f"MIG-{handle[-1]}"
def nvmlDeviceGetMemoryInfo(handle):
    if handle == "MIG 1": _unsupported()
    return _Of(total=80 << 30, free=60 << 30, used=19 << 30)
def nvmlDeviceGetCudaComputeCapability(handle): return (9, 0)
def nvmlDeviceGetPciInfo(handle):
    if not isinstance(handle, int): _unsupported()
    return _Of(busId=b"00000000:%02X:00.0" % (0x3a + handle))
def nvmlDeviceGetComputeRunningProcesses(handle): return [_Of(pid=11, usedGpuMemory=5), _Of(pid=12, usedGpuMemory=None)]
def nvmlDeviceGetGraphicsRunningProcesses(handle): return _unsupported()
"""
Bindings = Callable[[str], Nvml]


@pytest.fixture
async def bindings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Bindings]:
    """Stand-in bindings with a further line of code; gives what asks them."""
    made: list[Nvml] = []

    def make(code: str = "", timeout: float = 20.0) -> Nvml:
        (tmp_path / "pynvml.py").write_text(BINDINGS + code)
        paths = [str(tmp_path), *(path for path in sys.path if path)]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
        monkeypatch.setenv("WEFT_JOIN_TOKEN", "secret")
        made.append(Nvml(timeout))
        return made[-1]

    yield make
    for each in made:
        await each.close()


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """A factory of tools on the only folder of the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(tool, "_MORE_FOLDERS", ())

    def make(name: str, script: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return make


def processes() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


async def test_devices_and_parts_of_divided_ones_are_found_and_a_lost_one_is_passed_over(bindings: Bindings) -> None:
    look = await bindings("").look()

    assert look.unknown is None
    assert [
        (0, "GPU-0", 80 << 30, "580.95.05", "9.0", "0000:3a:00.0"),
        (1, "MIG-0", 80 << 30, "580.95.05", "9.0", "0000:3b:00.0"),
        (1, "MIG-1", None, "580.95.05", "9.0", "0000:3b:00.0"),
    ] == [(one.number, one.uuid, one.memory, one.driver, one.compute_capability, one.pci) for one in look.found]


async def test_one_process_answers_question_after_question_and_ends_when_it_is_closed(bindings: Bindings) -> None:
    nvml = bindings("")
    before = processes()

    first, second = await nvml.memory(), await nvml.memory()

    (probe,) = processes() - before
    assert first == second
    assert {11: 5, 12: None} == first[0].processes
    assert "secret" not in psutil.Process(probe).environ().values()
    await nvml.close()
    assert before == processes()


async def test_a_container_without_nvml_is_told_what_to_set(bindings: Bindings) -> None:
    look = await bindings('def nvmlInit(): raise NVMLError("NVML Shared Library Not Found")').look()

    assert () == look.found
    assert look.unknown is not None
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in look.unknown


async def test_a_driver_that_hangs_is_given_up_and_asked_anew_the_next_time(bindings: Bindings, tmp_path: Path) -> None:
    before = processes()
    nvml = bindings("import time\ndef nvmlDeviceGetCount(): time.sleep(600)\n")
    nvml._timeout = 1.5
    look = await nvml.look()

    assert look.unknown is not None
    assert "hang" in look.unknown
    assert before == processes()
    (tmp_path / "pynvml.py").write_text(BINDINGS)
    nvml._timeout = 20.0
    assert 3 == len((await nvml.look()).found)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os\ndef nvmlDeviceGetCount(): os.abort()\n", "status -6"),
        ("def nvmlInit(): raise NVMLError('Driver/library version mismatch')\n", "version mismatch"),
        ("def nvmlInit(): print('nonsense', flush=True)\n", "failed"),
        ("raise ModuleNotFoundError\n", "not installed"),
    ],
)
async def test_a_broken_driver_is_a_sentence_and_breaks_nothing_else(bindings: Bindings, code: str, said: str) -> None:
    look = await bindings(code).look()

    assert look.unknown is not None
    assert said in look.unknown
    with pytest.raises(NoAnswer):
        await bindings(code).memory()


async def test_a_board_without_nvml_has_its_one_accelerator_with_the_machines_memory(bindings: Bindings) -> None:
    (found,) = (await bindings("raise ModuleNotFoundError\n").look(Board("Jetson AGX Orin", "R36.4.3"))).found

    assert ("Jetson AGX Orin", None, True, "R36.4.3") == (found.name, found.memory, found.unified, found.driver)


async def test_a_tool_that_hangs_is_given_up_with_all_that_it_started(tools: Callable[[str, str], Path]) -> None:
    before = processes()

    with pytest.raises(NoAnswer, match=r"xpu-smi did not answer within 1 s"):
        await tool.ask(str(tools("xpu-smi", "sleep 600 & sleep 600")), timeout=1.0)
    async with asyncio.timeout(30):
        while before != processes():
            await asyncio.sleep(0.05)


async def test_a_tool_that_never_stops_talking_is_cut_off(
    tools: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "MOST_BYTES", 100_000)

    with pytest.raises(NoAnswer):
        await tool.ask(str(tools("xpu-smi", "yes")))


async def test_tools_inherit_nothing_that_is_not_theirs(
    tools: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_JOIN_TOKEN", "secret")

    said = await tool.ask(str(tools("rocm-smi", "env")))

    assert "secret" not in said
    assert "LC_ALL=C" in said


async def test_intels_tool_is_asked_for_each_device(tools: Callable[[str, str], Path]) -> None:
    listed = '{"device_list": [{"device_id": 0, "device_type": "GPU"}, {"device_id": 1, "device_type": "GPU"}]}'
    detail = '{"device_name": "Arc", "memory_physical_size_byte": "17179869184"}'
    tools("xpu-smi", f"""if [ "$2" = -d ]; then echo '{detail}'; else echo '{listed}'; fi""")

    look = await intel.look()

    assert look is not None
    assert [(0, "Arc", 16 << 30), (1, "Arc", 16 << 30)] == [(one.number, one.name, one.memory) for one in look.found]


async def test_amds_old_tool_answers_where_the_new_one_fails(tools: Callable[[str, str], Path]) -> None:
    tools("amd-smi", "exit 1")
    tools("rocm-smi", """echo '{"card0": {"Card Series": "MI", "VRAM Total Memory (B)": "8"}}'""")

    look = await amd.look()

    assert look is not None
    assert [("MI", 8)] == [(one.name, one.memory) for one in look.found]


async def test_a_driver_of_amds_without_a_tool_that_works_is_unknown_and_not_nothing(
    tools: Callable[[str, str], Path], tmp_path: Path
) -> None:
    driver = tmp_path / "kfd"
    tools("rocm-smi", "exit 2")
    assert await amd.look(driver) is None

    driver.touch()
    look = await amd.look(driver)

    assert look is not None
    assert look.unknown is not None
    assert "status 2" in look.unknown


async def test_where_there_are_no_tools_nothing_is_found_and_no_process_started(
    tools: Callable[[str, str], Path],
) -> None:
    before = processes()

    looks = await search(Nvml())

    assert await intel.look() is None
    assert await vulkan.look() is None
    assert {look.tool for look in looks} <= {"nvidia", "amd"}  # whose drivers may be there by their device files
    assert looks or before == processes()


class OneHost:
    """A supervisor that knows one engine host."""

    def __init__(self, pid: int) -> None:
        launch = {"replica": "m-x-1", "epoch": 1, "incarnation": "i-1", "source": "simulated:", "engine": "simulated"}
        self._host = SupervisedHost("i-1", pid, launch, None, None, ())

    async def hosts(self) -> list[SupervisedHost]:
        return [self._host]


async def test_what_a_replica_holds_of_an_accelerator_is_what_the_driver_says_of_its_processes(
    bindings: Bindings,
    tmp_path: Path,
    hand_log: HandLog,
    assigned: Callable[..., Assigned],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pressure_loop, "_LOOK_S", 0.01)
    # given a replica that claims of a device, and a driver that lists its process among others
    device = Device(index=3, vendor="nvidia", name="H100", memory=80 << 30, uuid="GPU-0", number=0)
    hardware = Hardware(cpus=1, memory=1 << 30, disk_free=1, architecture="x86_64", devices=(device,))
    own = OwnLog()
    claims = (Member(node=NODE, rank=0, devices=(DeviceClaim(index=3, bytes=8 << 30),)),)
    given = assigned().model_copy(update={"members": claims})
    report = Reported(hardware=hardware, backends=(), builtins=(), agent_version="0")
    own.fold(hand_log.given(subjects.node(NODE), given))
    own.fold(hand_log.given(subjects.machine(NODE), report))
    process = await asyncio.create_subprocess_exec("sleep", "60")
    supervisor = cast(SupervisorClient, OneHost(process.pid))
    context = HostContext(NODE, "127.0.0.1", None, time.monotonic, lambda: None)
    hosts = Hosts(HostStarts(context, supervisor, launches=tmp_path, python=""))
    try:
        await hosts.refresh()
        nvml = bindings(
            "def nvmlDeviceGetComputeRunningProcesses(handle):\n"
            f"    return [_Of(pid={process.pid}, usedGpuMemory=5 << 30), _Of(pid=1, usedGpuMemory=7)]"
        )
        # when the agent looks
        watch = PressureWatch(NODE, own, hosts, nvml, lambda: None)
        watching = asyncio.create_task(watch.run())
        async with asyncio.timeout(30):
            while not hosts.memory():
                await asyncio.sleep(0.01)
        watching.cancel()
        # then that is what it holds of it
        assert (MemorySaid(replica=ReplicaId("m-x-1"), device=3, used=5 << 30),) == hosts.memory()
    finally:
        await hosts.close()
        process.kill()
        await process.wait()
