"""Which devices a host's process sees."""

import importlib
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from weft_engine.adapters.llamacpp_native import native_params
from weft_engine.adapters.llamacpp_settings import LlamaCppSettings
from weft_engine.launch import ClaimedDevice, Launch
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


@pytest.mark.parametrize(
    ("claimed", "settings", "layers", "parts"),
    [
        pytest.param([], {}, 0, [0.0, 0.0], id="nothing claimed: the processor"),
        pytest.param([device("cpu", None)], {}, 0, [0.0, 0.0], id="the processor"),
        pytest.param([device("nvidia", 1)], {}, -1, [0.0, 0.0], id="one accelerator gets all layers"),
        pytest.param([device("nvidia", 1)], {"gpu_layers": 7}, 7, [0.0, 0.0], id="or as many as the spec says"),
        pytest.param([device("apple", 0)], {"gpu_layers": 39}, 39, [0.0, 0.0], id="up to one less than there are"),
        pytest.param([device("amd", 0)], {"gpu_layers": 40}, -1, [0.0, 0.0], id="as many as it has are all"),
        pytest.param([device("intel", 0)], {"gpu_layers": 99}, -1, [0.0, 0.0], id="and more are all, too"),
        pytest.param([device("cpu", None)], {"gpu_layers": 0}, 0, [0.0, 0.0], id="none where the spec says so"),
        pytest.param(
            [device("cpu", None), device("nvidia", 1)],
            {"gpu_layers": 12},
            12,
            [0.0, 0.0],
            id="what is claimed of the machine's memory beside it is no device",
        ),
        pytest.param(
            [device("cpu", None), device("nvidia", 0), device("nvidia", 1)], {}, -1, [0.5, 0.5], id="nor with several"
        ),
    ],
)
def test_llama_cpp_puts_its_layers_where_the_claim_is(
    claimed: list[ClaimedDevice], settings: dict[str, int], layers: int, parts: list[float]
) -> None:
    params = llamacpp_params(claimed, settings)

    assert (layers, 0, parts) == (params.n_gpu_layers, params.main_gpu, list(params.tensor_split)[:2])


def test_llama_cpp_divides_its_layers_as_the_claim_divides_its_bytes() -> None:
    claimed = [device("amd", 0).model_copy(update={"bytes": 3 * GIB}), device("amd", 1)]

    params = llamacpp_params(claimed, {})

    assert [0.75, 0.25, 0.0] == list(params.tensor_split)[:3]


def llamacpp_params(claimed: list[ClaimedDevice], settings: dict[str, int]) -> Any:
    launch = Launch(
        replica="m-1",
        incarnation="i-1",
        node="n-1",
        revision_digest="d-1",
        engine="llama.cpp",
        model_path="-",
        context_tokens=64,
        concurrency=1,
        devices=tuple(claimed),
        engine_args=dict(settings),
    )
    return native_params(
        importlib.import_module("xllamacpp"), launch, LlamaCppSettings.of(launch), "key", False, layers=40
    )
