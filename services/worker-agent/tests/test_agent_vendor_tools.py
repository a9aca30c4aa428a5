"""What the vendors' tools say is read rightly. The samples are written after the forms that their makers document."""

from pathlib import Path
from typing import Any

from weft_worker_agent.domain.accelerators import Accelerator
from weft_worker_agent.outbound.machine.accelerators import amd, apple, intel, tool_output, vulkan
from weft_worker_agent.outbound.machine.accelerators.nvidia import driver_is_there, found_in, memory_in
from weft_worker_agent.outbound.machine.accelerators.unified import Board, board

SAMPLES = Path(__file__).parent / "samples"
GIB = 1 << 30


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def test_amd_smi_of_rocm_7_is_read() -> None:
    static = tool_output.parsed("amd-smi", sample("amd-smi-static-rocm7.json"))
    listed = tool_output.parsed("amd-smi", sample("amd-smi-list-rocm7.json"))

    first, second = amd.from_amd_smi(static, listed)

    uuid, place = "35ff74a1-0000-1000-80ac-0d5e9f1b7a42", "0000:05:00.0"
    name = "AMD Instinct MI300X"
    assert Accelerator("amd", 0, name, 196592 << 20, uuid, "6.14.14", "gfx942", pci=place) == first
    assert (1, None, None, "") == (second.number, second.memory, second.driver, second.uuid)
    assert "0000:15:00.0" == second.pci


def test_amd_smi_of_rocm_6_is_read() -> None:
    static = tool_output.parsed("amd-smi", sample("amd-smi-static-rocm6.json"))

    (found,) = amd.from_amd_smi(static, [])

    assert Accelerator("amd", 0, "AMD Radeon PRO W7900", 46064 << 20, "", "6.8.5", "gfx1100") == found


def test_rocm_smi_is_read_past_its_warnings() -> None:
    found = amd.from_rocm_smi(tool_output.parsed("rocm-smi", sample("rocm-smi.json")))

    uuid, place = "0x1c3f6a7d90b2e815", "0000:03:00.0"
    assert (
        Accelerator("amd", 0, "Radeon RX 7900 XT", 21458059264, uuid, "6.10.5", "gfx1100", pci=place),
        Accelerator("amd", 1, "0x1900", None, "", "6.10.5", None),
    ) == found


def test_xpu_smi_is_read() -> None:
    listed = intel.devices_in(tool_output.parsed("xpu-smi", sample("xpu-smi-discovery.json")))
    detail = tool_output.parsed("xpu-smi", sample("xpu-smi-discovery-0.json"))

    assert [0] == [row["device_id"] for row in listed]
    uuid, place = "00000000-0000-0000-8c26-a7dc56c00008", "0000:4d:00.0"
    name = "Intel(R) Data Center GPU Flex 170"
    expected = Accelerator("intel", 0, name, 14248 << 20, uuid, "I915_23.10.15", pci=place)
    assert expected == intel.accelerator({**listed[0], **detail})
    assert intel.accelerator(listed[0]).memory is None


def test_vulkaninfo_is_read_without_the_processors_that_draw() -> None:
    found = vulkan.from_summary(sample("vulkaninfo-summary.txt"))

    assert [
        ("amd", 0, "AMD Radeon RX 6600 XT (RADV NAVI23)", None, "Mesa 25.0.7", False),
        ("intel", 1, "Intel(R) Graphics (RPL-S)", None, "Mesa 25.0.7", True),
    ] == [(one.vendor, one.number, one.name, one.memory, one.driver, one.integrated) for one in found]
    assert "00000000-0300-0000-0000-000000000000" == found[0].uuid
    assert () == vulkan.from_summary("ERROR: [Loader Message] Code 0 : no driver")


def test_a_place_on_the_bus_is_told_alike_and_anything_else_is_none() -> None:
    assert "0000:4d:00.0" == tool_output.pci(" 0000:4D:00.0 ")
    assert {""} == {tool_output.pci(said) for said in ("N/A", None, 7, "4d:00.0", "0000:4d:00.0; id", "/dev/dri")}


def test_apples_chips_share_memory_and_cards_have_their_own() -> None:
    (chip,) = apple.from_profile(tool_output.parsed("system_profiler", sample("system-profiler-m2.json")))
    integrated, card = apple.from_profile(
        tool_output.parsed("system_profiler", sample("system-profiler-intel-mac.json"))
    )

    assert ("apple", "Apple M2 Max", None, True) == (chip.vendor, chip.name, chip.memory, chip.unified)
    assert ("intel", None, False, True) == (
        integrated.vendor,
        integrated.memory,
        integrated.unified,
        integrated.integrated,
    )
    assert ("amd", "AMD Radeon Pro 5500M", 8 * GIB) == (card.vendor, card.name, card.memory)


def test_nvidias_answer_is_read_and_unified_memory_only_where_the_chip_is_known_for_it() -> None:
    answer = tool_output.parsed("probe", sample("nvml-devices.json"))

    h100, spark, lost = found_in(answer, None)

    uuid = "GPU-6f1b0c5a-3d2e-4f70-9a81-b2c3d4e5f607"
    name, place = "NVIDIA H100 80GB HBM3", "0000:3b:00.0"
    assert Accelerator("nvidia", 0, name, 81559 << 20, uuid, "580.95.05", "9.0", pci=place) == h100
    assert ("NVIDIA GB10", None, True) == (spark.name, spark.memory, spark.unified)
    assert ("NVIDIA A40", None, False) == (lost.name, lost.memory, lost.unified)
    assert found_in(answer, Board("Jetson"))[2].unified


def test_what_each_process_holds_is_read_and_what_is_not_told_stays_unknown() -> None:
    (found,) = memory_in(tool_output.parsed("probe", sample("nvml-memory.json")))

    assert (81559 << 20, 60000 << 20) == (found.total, found.free)
    assert {4242: 20000 << 20, 4343: None} == found.processes


def tree(root: Path, **files: str) -> Path:
    for name, content in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def test_boards_with_one_memory_are_known_by_their_files(tmp_path: Path) -> None:
    orin = tree(
        tmp_path / "orin",
        **{
            "proc__device-tree__model": "NVIDIA Jetson AGX Orin Developer Kit\0",
            "proc__device-tree__compatible": "nvidia,p3737-0000+p3701-0005\0nvidia,tegra234\0",
            "etc__nv_tegra_release": "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic\n",
        },
    )
    thor = tree(
        tmp_path / "thor",
        **{
            "proc__device-tree__model": "NVIDIA Jetson AGX Thor Developer Kit\0",
            "proc__device-tree__compatible": "nvidia,p4071-0000\0nvidia,tegra264\0",
        },
    )
    spark = tree(tmp_path / "spark", sys__class__dmi__id__product_name="NVIDIA_DGX_Spark\n")
    server = tree(tmp_path / "server", sys__class__dmi__id__product_name="PowerEdge XE9680\n")
    raspberry = tree(tmp_path / "pi", **{"proc__device-tree__compatible": "raspberrypi,5-model-b\0brcm,bcm2712\0"})

    assert Board("NVIDIA Jetson AGX Orin Developer Kit", "R36.4.3") == board(orin)
    assert Board("NVIDIA Jetson AGX Thor Developer Kit") == board(thor)
    assert Board("NVIDIA_DGX_Spark") == board(spark)
    assert board(server) is board(raspberry) is board(tmp_path / "nothing") is None


def test_a_driver_shows_itself_by_its_device_files(tmp_path: Path) -> None:
    assert not driver_is_there(tmp_path)
    assert driver_is_there(tree(tmp_path, dev__nvidiactl=""))


def test_what_makes_no_sense_is_nothing_and_no_error() -> None:
    several: list[Any] = [None, [], {}, "text", [1], {"gpu_data": 3}, {"card0": None}, {"device_list": [{}]}]
    for nonsense in several:
        assert () == amd.from_amd_smi(nonsense, nonsense)
        assert [] == intel.devices_in(nonsense)
        assert () == apple.from_profile(nonsense)
        assert all(one.memory is None for one in amd.from_rocm_smi(nonsense))
