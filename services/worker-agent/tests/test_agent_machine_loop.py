"""When a node's report is known, and that it is looked for again while a driver is silent."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from weft_worker_agent.domain.accelerators import Accelerator, Look
from weft_worker_agent.domain.device_report import Use
from weft_worker_agent.domain.simulated_gpus import parse_simulated
from weft_worker_agent.inbound import machine_loop
from weft_worker_agent.inbound.machine_loop import MachineWatch
from weft_worker_agent.outbound.machine import inventory

SILENT = Look("nvidia", unknown="it hangs")
FOUND = Look("nvidia", (Accelerator("nvidia", 0, "H100", 80 << 30, "GPU-0"),))


def watch(tmp_path: Path, looks: Iterator[Look], use: Use | None = None) -> tuple[MachineWatch, asyncio.Event]:
    changed = asyncio.Event()

    async def search() -> tuple[Look, ...]:
        return (next(looks),)

    return MachineWatch(inventory.report(tmp_path, 1), use or Use(), search, changed.set), changed


async def test_nothing_is_reported_before_it_is_known_what_there_is(tmp_path: Path) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def search() -> tuple[Look, ...]:
        asked.set()
        await answer.wait()
        return (FOUND,)

    changed = asyncio.Event()
    watched = MachineWatch(inventory.report(tmp_path, 1), Use(), search, changed.set)
    task = asyncio.create_task(watched.run())
    await asked.wait()
    assert watched.report(None) is None

    answer.set()
    await changed.wait()
    report = watched.report(None)
    task.cancel()

    assert report is not None
    assert ["GPU-0"] == [device.uuid for device in report.hardware.devices[1:]]


async def test_a_silent_driver_is_asked_again_until_it_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_loop, "_AGAIN_S", 0.01)
    watched, changed = watch(tmp_path, iter([SILENT, SILENT, FOUND]))
    task = asyncio.create_task(watched.run())
    await changed.wait()
    first = watched.report(None)
    changed.clear()
    async with asyncio.timeout(30):
        await changed.wait()
    last = watched.report(first)
    task.cancel()

    assert first is not None
    assert last is not None
    assert (("it hangs",), ()) == (first.hardware.notes, last.hardware.notes)
    assert [1] == [device.index for device in last.hardware.devices[1:]]


async def test_made_up_accelerators_are_not_looked_for_and_the_simulated_engine_runs_on_them(tmp_path: Path) -> None:
    use = Use(simulated=parse_simulated("1x80GB:nvidia"))
    base = inventory.report(tmp_path, 1, ("nvidia",))
    changed = asyncio.Event()
    watched = MachineWatch(base, use, lambda: pytest.fail("searched"), changed.set)
    task = asyncio.create_task(watched.run())
    await changed.wait()
    report = watched.report(None)
    task.cancel()

    assert report is not None
    assert [True] == [device.simulated for device in report.hardware.devices[1:]]
    vendors = {backend.engine: backend.vendors for backend in report.backends}
    assert {"llama.cpp": ("cpu",), "simulated": ("nvidia",), "openai": ("cpu",)} == vendors
