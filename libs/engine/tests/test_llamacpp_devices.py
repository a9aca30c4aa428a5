"""llama.cpp on accelerators: what is claimed is there, or the host says so and loads nothing."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import weft_tiny
from weft_engine.adapters.llamacpp_native import DevicesMissing, check_devices
from weft_engine.adapters.llamacpp_settings import LlamaCppSettings
from weft_engine.launch import ClaimedDevice

StartHost = Callable[..., AbstractAsyncContextManager[Any]]


class Native:
    """The binding, with so many graphics cards beside the processor."""

    class ggml_backend_dev_type:
        GGML_BACKEND_DEVICE_TYPE_CPU, GGML_BACKEND_DEVICE_TYPE_GPU, GGML_BACKEND_DEVICE_TYPE_IGPU = 0, 1, 2

    def __init__(self, *types: int) -> None:
        self.types = types

    def get_device_info(self) -> list[dict[str, Any]]:
        return [{"name": f"D{number}", "type": type} for number, type in enumerate((*self.types, 0))]


def claimed(*vendors: Any) -> list[ClaimedDevice]:
    return [ClaimedDevice(vendor=vendor, number=at, bytes=1) for at, vendor in enumerate(vendors)]


@pytest.mark.parametrize(
    ("types", "vendors", "layers"),
    [
        ((1,), ("nvidia",), None),
        ((1, 1), ("cpu", "nvidia"), 5),
        ((2,), ("amd",), None),
        ((), ("cpu",), None),
        ((), (), None),
        ((), ("nvidia",), 0),
    ],
)
def test_as_many_accelerators_as_are_claimed_will_do(
    types: tuple[int, ...], vendors: tuple[str, ...], layers: int | None
) -> None:
    check_devices(Native(*types), claimed(*vendors), LlamaCppSettings(gpu_layers=layers))


def test_fewer_are_told_by_name() -> None:
    with pytest.raises(DevicesMissing, match=r"sees 1 of the 2 claimed accelerators \(D0\): its driver"):
        check_devices(Native(1), claimed("nvidia", "nvidia"), LlamaCppSettings())


async def test_a_host_whose_llama_cpp_sees_no_accelerator_does_not_serve_a_claimed_one_from_the_processor(
    start: StartHost,
) -> None:
    # given what comes with Weft, which is built for processors
    device = {"vendor": "nvidia", "number": 0, "uuid": "GPU-00000000-0000-0000-0000-000000000000", "bytes": 1 << 30}
    async with start(engine="llama.cpp", model_path=str(weft_tiny.gguf_path()), devices=[device]) as host:
        said = await host.phase("failed")
    # then another try may find it again
    assert "llama.cpp sees 0 of the 1 claimed accelerators" in said["reason"]
    assert not said["permanent"]
