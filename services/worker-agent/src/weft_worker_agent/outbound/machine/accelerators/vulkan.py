"""What Vulkan's loader knows, by `vulkaninfo --summary`: accelerators for which no vendor's tool is installed.

It names no memory, so nothing is placed on what only Vulkan knows.
Form: https://github.com/KhronosGroup/Vulkan-Tools/blob/main/vulkaninfo/vulkaninfo.md
"""

import re
from collections.abc import Iterator

from weft_contracts.facts.values import Vendor

from weft_worker_agent.domain.accelerators import Accelerator, Look
from weft_worker_agent.outbound.machine.accelerators import tool, tool_output
from weft_worker_agent.outbound.machine.accelerators.tool import NoAnswer

_VENDORS: dict[int, Vendor] = {0x10DE: "nvidia", 0x1002: "amd", 0x8086: "intel", 0x106B: "apple"}
"""PCI vendor ids, which Vulkan takes over."""
_TYPES = ("DISCRETE_GPU", "INTEGRATED_GPU", "VIRTUAL_GPU")
"""The others are processors that draw."""
_GPU = re.compile(r"^GPU(\d+):\s*$")
_FIELD = re.compile(r"^\s+(\w+)\s*=\s*(.*?)\s*$")


async def look() -> Look | None:
    """What devices there are; None where the tool isn't, or fails: it fails wherever there is no driver."""
    if (path := tool.path_of("vulkaninfo")) is None:
        return None
    try:
        return Look("vulkan", from_summary(await tool.ask(path, "--summary")))
    except NoAnswer:
        return None


def from_summary(output: str) -> tuple[Accelerator, ...]:
    """The accelerators that a summary lists."""
    found: list[Accelerator] = []
    for number, fields in _sections(output):
        kind = fields.get("deviceType", "").removeprefix("PHYSICAL_DEVICE_TYPE_")
        vendor = _VENDORS.get(_number(fields.get("vendorID", "")))
        if vendor is not None and kind in _TYPES:
            name = fields.get("deviceName") or f"{vendor} accelerator"
            driver = tool_output.text(fields.get("driverInfo")) or tool_output.text(fields.get("driverVersion"))
            uuid, integrated = fields.get("deviceUUID", ""), kind == "INTEGRATED_GPU"
            found.append(Accelerator(vendor, number, name, None, uuid, driver, integrated=integrated))
    return tuple(found)


def _sections(output: str) -> Iterator[tuple[int, dict[str, str]]]:
    number, fields = -1, dict[str, str]()
    for line in output.splitlines():
        if heading := _GPU.match(line):
            if number >= 0:
                yield number, fields
            number, fields = int(heading[1]), {}
        elif field := _FIELD.match(line):
            fields[field[1]] = field[2]
    if number >= 0:
        yield number, fields


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return -1
