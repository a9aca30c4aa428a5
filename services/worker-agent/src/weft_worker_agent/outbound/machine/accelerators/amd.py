"""AMD: `amd-smi`, or its predecessor `rocm-smi`, where they are.

Forms: https://rocm.docs.amd.com/projects/amdsmi/en/latest/how-to/amdsmi-cli-tool.html
"""

import re
from pathlib import Path
from typing import Any

from weft_worker_agent.domain.accelerators import Accelerator, Look
from weft_worker_agent.outbound.machine.accelerators import tool, tool_output
from weft_worker_agent.outbound.machine.accelerators.tool import NoAnswer
from weft_worker_agent.outbound.machine.accelerators.tool_output import Row

_CARD = re.compile(r"card(\d+)")
_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
"""What amd-smi calls MB are 2²⁰ bytes."""


async def look(driver: Path = Path("/dev/kfd")) -> Look | None:
    """What devices there are; None where neither a tool nor the driver is there."""
    why: list[str] = []
    if (path := tool.path_of("amd-smi")) is not None:
        try:
            static = await tool.ask(path, "static", "--asic", "--vram", "--driver", "--json")
            listed = await tool.ask(path, "list", "--json")
            found = from_amd_smi(tool_output.parsed("amd-smi", static), tool_output.parsed("amd-smi", listed))
            return Look("amd", found)
        except NoAnswer as error:
            why.append(str(error))
    if (path := tool.path_of("rocm-smi")) is not None:
        asked = (
            "--showproductname",
            "--showuniqueid",
            "--showbus",
            "--showmeminfo",
            "vram",
            "--showdriverversion",
            "--json",
        )
        try:
            return Look("amd", from_rocm_smi(tool_output.parsed("rocm-smi", await tool.ask(path, *asked))))
        except NoAnswer as error:
            why.append(str(error))
    if not driver.exists():  # noqa: ASYNC240 - a device node, on no disk
        return None
    reason = "; ".join(why) or "neither amd-smi nor rocm-smi is installed"
    return Look("amd", unknown=f"AMD's driver is there and its devices are not known: {reason}")


def from_amd_smi(static: Any, listed: Any) -> tuple[Accelerator, ...]:
    """From `amd-smi static` and `amd-smi list`, in the forms of ROCm 6 (a list) and 7 (`gpu_data`)."""
    uuids = {row.get("gpu"): tool_output.text(row.get("uuid")) for row in _gpus(listed)}
    places = {row.get("gpu"): tool_output.pci(row.get("bdf")) for row in _gpus(listed)}
    found: list[Accelerator] = []
    for row in _gpus(static):
        number = row.get("gpu")
        asic, driver = tool_output.row(row.get("asic")), tool_output.row(row.get("driver"))
        name = tool_output.text(asic.get("market_name")) or "AMD accelerator"
        version = tool_output.text(driver.get("version")) or tool_output.text(driver.get("driver_version"))
        graphics = tool_output.text(asic.get("target_graphics_version"))
        if isinstance(number, int):
            memory = _bytes(tool_output.row(row.get("vram")).get("size"))
            uuid, place = uuids.get(number) or "", places.get(number, "")
            found.append(Accelerator("amd", number, name, memory, uuid, version, graphics, pci=place))
    return tuple(found)


def from_rocm_smi(answer: Any) -> tuple[Accelerator, ...]:
    """From `rocm-smi … --json`: an object for each `card<N>`, and one for the `system`."""
    cards = tool_output.row(answer)
    version = tool_output.text(tool_output.row(cards.get("system")).get("Driver version"))
    found: list[Accelerator] = []
    for key in cards:
        if match := _CARD.fullmatch(key):
            card = {name.lower(): value for name, value in tool_output.row(cards.get(key)).items()}
            series, model = tool_output.text(card.get("card series")), tool_output.text(card.get("card model"))
            memory = tool_output.count(card.get("vram total memory (b)"))
            uuid, graphics = tool_output.text(card.get("unique id")) or "", tool_output.text(card.get("gfx version"))
            name = series or model or "AMD accelerator"
            place = tool_output.pci(card.get("pci bus"))
            found.append(Accelerator("amd", int(match[1]), name, memory, uuid, version, graphics, pci=place))
    return tuple(found)


def _gpus(answer: Any) -> list[Row]:
    return tool_output.rows(answer if isinstance(answer, list) else tool_output.row(answer).get("gpu_data"))


def _bytes(size: Any) -> int | None:
    """`{"value": 196592, "unit": "MB"}`, or `196592 MB` in older releases."""
    if pair := tool_output.row(size):
        value, unit = pair.get("value"), str(pair.get("unit") or "MB")
    else:
        value, _, unit = str(size or "").partition(" ")
    number, scale = tool_output.count(value), _UNITS.get(unit.strip().upper() or "MB")
    return number * scale if number is not None and scale is not None else None
