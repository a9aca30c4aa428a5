"""The graphics of Intel's processors are no accelerator: neither where sysfs tells, nor whatever tool names them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.facts.values import Vendor
from weft_worker_agent.domain.accelerators import Accelerator, Look, Tool, together
from weft_worker_agent.domain.pci import pci_address
from weft_worker_agent.outbound.machine.accelerators import intel
from weft_worker_agent.outbound.machine.accelerators.intel_graphics import is_integrated

OF_THE_PROCESSOR = "0000:00:02.0"


def device(root: Path, address: str, **files: str) -> Path:
    """A made-up sysfs with one of Intel's devices, with these files of its driver."""
    folder = root / "sys/bus/pci/devices" / address
    for name, content in {"vendor": "0x8086", **files}.items():
        file = folder / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content + "\n")
    return root


def test_what_sits_where_processors_have_their_graphics_is_integrated(tmp_path: Path) -> None:
    root = device(tmp_path, OF_THE_PROCESSOR, drm__card0__gt_act_freq_mhz="300")

    assert is_integrated(OF_THE_PROCESSOR, root)


def test_what_sits_elsewhere_is_a_card(tmp_path: Path) -> None:
    root = device(tmp_path, "0000:03:00.0")

    assert not is_integrated("0000:03:00.0", root)
    assert not is_integrated("0001:00:02.0", root)
    assert not is_integrated("", root)


@pytest.mark.parametrize(
    ("file", "size", "integrated"),
    [
        pytest.param("tile0__physical_vram_size_bytes", "17095983104", False, id="xe names a tile's memory"),
        pytest.param("drm__card1__lmem_total_bytes", "17179869184", False, id="Intel's i915 names the card's"),
        pytest.param("tile0__physical_vram_size_bytes", "0", True, id="a tile without memory"),
        pytest.param("tile0__physical_vram_size_bytes", "no number", True, id="what can't be read says nothing"),
    ],
)
def test_a_card_that_a_virtual_machine_was_given_there_is_known_by_its_memory(
    tmp_path: Path, file: str, size: str, integrated: bool
) -> None:
    root = device(tmp_path, OF_THE_PROCESSOR, **{file: size})

    assert integrated is is_integrated(OF_THE_PROCESSOR, root)


def test_xpu_smi_tells_of_both_and_only_the_card_is_an_accelerator(tmp_path: Path) -> None:
    # given a machine with Intel's graphics, whose tool says its share of the machine's memory, and a card
    device(tmp_path, OF_THE_PROCESSOR)
    device(tmp_path, "0000:03:00.0", tile0__physical_vram_size_bytes="17095983104")
    rows = [
        {"device_id": 0, "pci_bdf_address": OF_THE_PROCESSOR, "memory_physical_size_byte": "33000000000"},
        {"device_id": 1, "pci_bdf_address": "0000:03:00.0", "memory_physical_size_byte": "17095983104"},
    ]
    # when both are looked at, by the tool and by Vulkan
    own = Look("intel", tuple(intel.accelerator(row, tmp_path) for row in rows))
    vulkan = Look("vulkan", (Accelerator("intel", 0, "Intel(R) Graphics", None, integrated=True),))
    # then the card alone is there, under the number that the tool gives it
    assert [(1, "0000:03:00.0")] == [(one.number, one.pci) for one in together([own, vulkan]).accelerators]
    assert () == together([vulkan]).accelerators


vendors: st.SearchStrategy[Vendor] = st.sampled_from(["nvidia", "amd", "intel", "apple"])
tools: st.SearchStrategy[Tool] = st.sampled_from(["nvidia", "amd", "intel", "apple", "vulkan"])
accelerators = st.builds(
    Accelerator, vendors, st.integers(0, 9), st.just("x"), st.none() | st.integers(1, 99), integrated=st.booleans()
)


@given(st.lists(st.builds(Look, tools, st.lists(accelerators, max_size=4).map(tuple)), max_size=5))
def test_nothing_of_intels_that_is_integrated_is_ever_found_and_nothing_else_is_lost(looks: list[Look]) -> None:
    found = together(looks).accelerators

    assert not [one for one in found if one.vendor == "intel" and one.integrated]
    believed = {look.tool: look for look in looks}
    own = [one for tool in ("nvidia", "amd", "intel", "apple") if tool in believed for one in believed[tool].found]
    assert {one for one in own if not (one.vendor == "intel" and one.integrated)} <= set(found)


@pytest.mark.parametrize(
    ("said", "address"),
    [
        ("0000:4d:00.0", "0000:4d:00.0"),
        ("00000000:3B:00.0", "0000:3b:00.0"),
        ("10000:E1:00.7", "10000:e1:00.7"),
        ("03:00.1", ""),
        ("N/A", ""),
        ("0000:4d:00", ""),
        (None, ""),
    ],
)
def test_addresses_are_written_as_the_systems_files_are_named(said: str | None, address: str) -> None:
    assert address == pci_address(said)
