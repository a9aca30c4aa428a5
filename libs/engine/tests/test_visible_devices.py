"""Which devices a host's process sees."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from weft_engine.launch import ClaimedDevice
from weft_engine.visible_devices import NotAddressable, visibility

StartHost = Callable[..., AbstractAsyncContextManager[Any]]
GIB = 1 << 30


def device(vendor: Any, number: int | None, uuid: str = "") -> ClaimedDevice:
    return ClaimedDevice(vendor=vendor, number=number, uuid=uuid, bytes=GIB)


@pytest.mark.parametrize(
    ("devices", "environment"),
    [
        pytest.param(
            [device("nvidia", 3, "GPU-c"), device("nvidia", 1, "GPU-a")],
            {"CUDA_VISIBLE_DEVICES": "GPU-c,GPU-a", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
            id="NVIDIA's by UUID, in the claim's order",
        ),
        pytest.param(
            [device("nvidia", 0, "MIG-7")],
            {"CUDA_VISIBLE_DEVICES": "MIG-7", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
            id="a part of a divided device",
        ),
        pytest.param(
            [device("nvidia", 2, "GPU-c"), device("nvidia", 4)],
            {"CUDA_VISIBLE_DEVICES": "2,4", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
            id="by number, all of them, where one has no UUID",
        ),
        pytest.param(
            [device("amd", 1, "GPU-4b2c"), device("amd", 0, "GPU-77aa")],
            {"ROCR_VISIBLE_DEVICES": "GPU-4b2c,GPU-77aa"},
            id="AMD's by the UUID that the runtime knows",
        ),
        pytest.param(
            [device("amd", 1, "53ff74a1-0000-1000-805d-1f")], {"ROCR_VISIBLE_DEVICES": "1"}, id="not by its tools' own"
        ),
        pytest.param(
            [device("intel", 2, "0000:18"), device("intel", 0, "0000:03")],
            {"ZE_AFFINITY_MASK": "2,0", "ZE_FLAT_DEVICE_HIERARCHY": "COMPOSITE"},
            id="Intel's by number",
        ),
        pytest.param(
            [device("ascend", 5), device("ascend", 2)],
            {"ASCEND_RT_VISIBLE_DEVICES": "2,5"},
            id="Ascend's in ascending order",
        ),
        pytest.param([device("apple", 0)], {}, id="Apple's, where there is nothing to choose"),
        pytest.param(
            [device("cpu", None)],
            {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1"},
            id="none, for what was placed on the processor",
        ),
        pytest.param(
            [device("cpu", None), device("amd", 0)],
            {"ROCR_VISIBLE_DEVICES": "0"},
            id="no word of CUDA's beside ROCm's, whose runtime heeds both",
        ),
    ],
)
def test_a_process_sees_the_claimed_devices_alone(devices: list[ClaimedDevice], environment: dict[str, str]) -> None:
    assert environment == visibility(devices)


def test_a_device_that_no_variable_can_name_is_refused() -> None:
    with pytest.raises(NotAddressable, match="the claimed intel device has no number"):
        visibility([device("intel", None, "0000:18")])


async def test_a_host_says_in_its_log_what_it_claims_and_sees(start: StartHost, tmp_path: Path) -> None:
    claimed = [{"vendor": "nvidia", "number": 1, "uuid": "GPU-a", "bytes": GIB}]
    async with start(devices=claimed) as host:
        await host.phase("ready")
    log = (tmp_path / "launch-0.err").read_text()
    [said] = [line for line in map(json.loads, log.splitlines()) if line["event"] == "claims"]

    assert claimed == said["devices"]
    assert "GPU-a" == said["environment"]["CUDA_VISIBLE_DEVICES"]


async def test_a_host_whose_device_cant_be_named_fails_for_good(start: StartHost) -> None:
    async with start(devices=[{"vendor": "ascend", "bytes": GIB}]) as host:
        failed = await host.phase("failed")
        assert 3 == await host.exit_code()

    assert (True, "the claimed ascend device has no number that its runtime knows") == (
        failed["permanent"],
        failed["reason"],
    )
