"""Asks NVIDIA's driver (NVML) in a process of its own: a driver that hangs or breaks takes only this one with it.

Run by `nvidia.py` as `python -m …`. One question a line on standard input, `devices` or `memory`; one JSON object
a line on standard output. It ends when its input closes. Besides the bindings it imports nothing.
"""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any


class Driver:
    """The driver, through `nvidia-ml-py`. Raises ImportError, and NVMLError where there is no driver that works."""

    def __init__(self) -> None:
        self._nvml: Any = importlib.import_module("pynvml")
        self._nvml.nvmlInit()

    def devices(self) -> dict[str, Any]:
        """Every device; what the driver doesn't say is null."""
        nvml = self._nvml
        version = self._try(nvml.nvmlSystemGetDriverVersion)
        return {"devices": [self._device(number, handle, card, version) for number, handle, card in self._handles()]}

    def memory(self) -> dict[str, Any]:
        """Of every device: its memory, what is free of it, and what each process holds (null: not told)."""
        found: list[dict[str, Any]] = []
        for _, handle, _ in self._handles():
            memory = self._try(self._nvml.nvmlDeviceGetMemoryInfo, handle)
            if memory is not None:
                uuid = self._text(self._nvml.nvmlDeviceGetUUID, handle)
                held = self._processes(handle)
                found.append({"uuid": uuid, "total": memory.total, "free": memory.free, "processes": held})
        return {"memory": found}

    def _handles(self) -> Iterator[tuple[int, Any, Any]]:
        """Devices as they can be used, each with the card that it is on: of one that is divided (MIG), its parts."""
        nvml = self._nvml
        for number in range(nvml.nvmlDeviceGetCount()):
            handle = self._try(nvml.nvmlDeviceGetHandleByIndex, number)
            if handle is None:
                continue  # fallen off the bus
            mode = self._try(nvml.nvmlDeviceGetMigMode, handle)
            if mode is None or mode[0] != 1:
                yield number, handle, handle
                continue
            for part in range(self._try(nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
                if (inside := self._try(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, part)) is not None:
                    yield number, inside, handle

    def _device(self, number: int, handle: Any, card: Any, version: Any) -> dict[str, Any]:
        nvml = self._nvml
        place = self._try(nvml.nvmlDeviceGetPciInfo, card)
        memory = self._try(nvml.nvmlDeviceGetMemoryInfo, handle)
        capability = self._try(nvml.nvmlDeviceGetCudaComputeCapability, handle)
        return {
            "number": number,
            "name": self._text(nvml.nvmlDeviceGetName, handle),
            "uuid": self._text(nvml.nvmlDeviceGetUUID, handle),
            "memory": memory.total if memory is not None else None,
            "driver": _plain(version),
            "compute_capability": f"{capability[0]}.{capability[1]}" if capability is not None else None,
            "pci": _plain(place.busId) if place is not None else None,
        }

    def _processes(self, handle: Any) -> dict[str, int | None]:
        held: dict[str, int | None] = {}
        for ask in (self._nvml.nvmlDeviceGetComputeRunningProcesses, self._nvml.nvmlDeviceGetGraphicsRunningProcesses):
            for process in self._try(ask, handle) or ():
                before = held.get(str(process.pid))
                held[str(process.pid)] = max(process.usedGpuMemory or 0, before or 0) or None
        return held

    def _text(self, ask: Callable[..., Any], handle: Any) -> str | None:
        return _plain(self._try(ask, handle))

    def _try(self, ask: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return ask(*arguments)
        except self._nvml.NVMLError:
            return None


def _plain(value: Any) -> str | None:
    """Older bindings answer with bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def main() -> int:
    """Answer until the input closes."""
    driver: Driver | None = None
    for line in sys.stdin:
        question = line.strip()
        try:
            driver = driver or Driver()
            answer = driver.devices() if question == "devices" else driver.memory()
        except ModuleNotFoundError:
            answer = {"error": "nvidia-ml-py is not installed here"}
        except Exception as error:  # whatever a driver does must be said, and to no other process
            answer = {"error": str(error) or type(error).__name__}
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
