"""From what the tools found to what the node reports."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.values import Device, Hardware, VramBudget
from weft_worker_agent.domain.accelerators import Accelerator, Findings, Look, together
from weft_worker_agent.domain.device_choice import parse_choice
from weft_worker_agent.domain.device_report import Use, indexed, told
from weft_worker_agent.domain.simulated_gpus import parse_simulated

GB = 10**9
PROCESSOR = Device(index=0, vendor="cpu", name="-", memory=64 * GB)
BASE = Reported(
    hardware=Hardware(cpus=8, memory=64 * GB, devices=(PROCESSOR,)), backends=(), builtins=(), agent_version="1"
)


def nvidia(number: int, memory: int | None = 80 * GB, **more: Any) -> Accelerator:
    return Accelerator("nvidia", number, "H100", memory, f"GPU-{number}", **more)


def after(findings: Findings, before: Reported | None = None, **use: Any) -> Hardware:
    return told(BASE, findings, Use(**use), before).hardware


def of(*found: Accelerator) -> Findings:
    return together([Look("nvidia", found)])


def test_the_processor_stays_the_first_device_and_accelerators_follow() -> None:
    hardware = after(of(nvidia(1), nvidia(0, driver="580.1", compute_capability="9.0")))

    expected = Device(
        index=1,
        vendor="nvidia",
        name="H100",
        memory=80 * GB,
        uuid="GPU-0",
        number=0,
        driver="580.1",
        compute_capability="9.0",
    )
    assert (PROCESSOR, expected) == hardware.devices[:2]
    assert [0, 1, 2] == [device.index for device in hardware.devices]


def test_an_accelerator_of_unknown_memory_is_told_apart_and_never_as_one_of_none() -> None:
    hardware = after(of(nvidia(0, None), nvidia(1)))

    assert ["GPU-0"] == [device.uuid for device in hardware.unsized]
    assert ["GPU-1"] == [device.uuid for device in hardware.devices[1:]]


def test_a_unified_accelerator_has_the_machines_memory() -> None:
    device = after(of(nvidia(0, None, unified=True))).devices[1]

    assert (64 * GB, True) == (device.memory, device.unified)


def test_workers_that_share_a_machine_share_its_accelerators_and_the_budget_is_of_the_part() -> None:
    device = after(of(nvidia(0)), parts=4, budget=VramBudget(share=0.5)).devices[1]

    assert (20 * GB, 10 * GB) == (device.memory, device.budget)


def test_a_part_of_a_memory_is_whole_bytes_and_never_more_than_there_is() -> None:
    assert 3 == after(of(nvidia(0, 10)), parts=3).devices[1].memory


def test_an_accelerator_of_unknown_memory_is_remembered_only_while_its_driver_is_silent() -> None:
    before = told(BASE, of(nvidia(0, None)), Use(), None)
    silent = together([Look("nvidia", unknown="it hangs")])

    assert ["GPU-0"] == [device.uuid for device in after(silent, before).unsized]
    assert () == after(of(), before).unsized


def test_accelerators_that_are_left_out_are_not_told() -> None:
    hardware = after(of(nvidia(0), nvidia(1)), choice=parse_choice("!nvidia:0"))

    assert ["GPU-1"] == [device.uuid for device in hardware.devices[1:]]
    assert () == hardware.notes


def test_a_setting_that_names_no_accelerator_is_said() -> None:
    assert ("WEFT_DEVICES names nvidia:7, and there is no such accelerator",) == after(
        of(nvidia(0)), choice=parse_choice("!nvidia:7")
    ).notes


def test_made_up_accelerators_stand_instead_of_those_that_there_are() -> None:
    hardware = after(of(nvidia(0)), simulated=parse_simulated("2x24GB:amd"), parts=4)

    assert 2 * [("amd", 24 * GB, True)] == [(one.vendor, one.memory, one.simulated) for one in hardware.devices[1:]]


def test_a_device_keeps_its_index_when_another_is_gone() -> None:
    before = told(BASE, of(nvidia(0), nvidia(1)), Use(), None)
    without_first = told(BASE, of(nvidia(1)), Use(), before)
    with_new = told(BASE, of(nvidia(1), nvidia(5)), Use(), without_first)

    assert [("GPU-1", 2)] == [(one.uuid, one.index) for one in without_first.hardware.devices[1:]]
    assert [("GPU-1", 2), ("GPU-5", 3)] == [(one.uuid, one.index) for one in with_new.hardware.devices[1:]]


def test_a_silent_driver_takes_no_device_away() -> None:
    before = told(BASE, of(nvidia(0), nvidia(1)), Use(), None)
    silent = together([Look("nvidia", unknown="it hangs"), Look("amd", (Accelerator("amd", 0, "MI", GB),))])

    hardware = after(silent, before)

    assert ("it hangs",) == hardware.notes
    assert ["GPU-0", "GPU-1", ""] == [device.uuid for device in hardware.devices[1:]]
    assert [1, 2, 3] == [device.index for device in hardware.devices[1:]]
    assert 1 == len(after(silent, None).devices[1:])
    allowed = after(silent, before, choice=parse_choice("!nvidia:0"), budget=VramBudget(share=0.5)).devices
    assert [("GPU-1", 40 * GB)] == [(device.uuid, device.budget) for device in allowed if device.vendor == "nvidia"]


def test_vulkan_is_believed_only_where_no_tool_of_the_vendors_own_speaks() -> None:
    seen = Look("vulkan", tuple(Accelerator(v, i, "seen", None) for i, v in enumerate(("nvidia", "amd", "intel"))))

    found = together([seen, Look("nvidia", (nvidia(0),)), Look("amd", unknown="it hangs")])

    assert [("nvidia", "H100"), ("intel", "seen")] == [(one.vendor, one.name) for one in found.accelerators]
    assert frozenset({"amd"}) == found.silent


_numbers = st.lists(st.integers(0, 9), unique=True, max_size=8)


@given(st.lists(_numbers, min_size=1, max_size=5))
def test_no_index_is_ever_given_to_another_device_at_once_or_next(rounds: list[list[int]]) -> None:
    before: tuple[Device, ...] = ()
    for numbers in rounds:
        found = [Device(index=0, vendor="nvidia", name="-", memory=1, uuid=f"GPU-{n}") for n in numbers]
        now = indexed(found, before)
        had = {device.index: device.uuid for device in before}
        assert len(now) == len({device.index for device in now})
        assert all(device.index > 0 and had.get(device.index, device.uuid) == device.uuid for device in now)
        before = now
