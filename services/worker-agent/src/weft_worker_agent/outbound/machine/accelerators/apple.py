"""Macs: `system_profiler`. Apple's own chips share the machine's memory.

Form: `man system_profiler`; keys as in https://github.com/exelban/stats and other readers of it.
"""

import re
import sys
from typing import Any

from weft_contracts.facts.values import Vendor

from weft_worker_agent.domain.accelerators import Accelerator, Look
from weft_worker_agent.outbound.machine.accelerators import tool, tool_output
from weft_worker_agent.outbound.machine.accelerators.tool import NoAnswer

_VENDORS: tuple[Vendor, ...] = ("apple", "amd", "nvidia", "intel")
_SIZE = re.compile(r"(\d+)\s*(MB|GB)")


async def look() -> Look | None:
    """What devices there are; None on anything but a Mac."""
    if sys.platform != "darwin" or (path := tool.path_of("system_profiler")) is None:
        return None
    try:
        output = await tool.ask(path, "SPDisplaysDataType", "-json")
        return Look("apple", from_profile(tool_output.parsed("system_profiler", output)))
    except NoAnswer as error:
        return Look("apple", unknown=f"this Mac's accelerators are not known: {error}")


def from_profile(answer: Any) -> tuple[Accelerator, ...]:
    """The accelerators that a profile of the displays names."""
    listed = tool_output.rows(tool_output.row(answer).get("SPDisplaysDataType"))
    found: list[Accelerator] = []
    vendor: Vendor | None
    for number, row in enumerate(listed):
        words = f"{row.get('spdisplays_vendor', '')} {row.get('sppci_model', '')}".lower()
        name = tool_output.text(row.get("sppci_model")) or tool_output.text(row.get("_name")) or "accelerator"
        vendor = next((each for each in _VENDORS if each in words), None)
        if vendor is not None:
            unified = vendor == "apple"
            memory = None if unified else _bytes(str(row.get("spdisplays_vram", "")))
            metal = tool_output.text(row.get("spdisplays_mtlgpufamilysupport"))
            family = metal.removeprefix("spdisplays_") if metal is not None else None
            integrated = vendor == "intel"  # no Mac has a card of Intel's
            found.append(Accelerator(vendor, number, name, memory, "", None, family, unified, integrated=integrated))
    return tuple(found)


def _bytes(text: str) -> int | None:
    """`8 GB` is 8 × 2³⁰ bytes here."""
    match = _SIZE.search(text)
    return (int(match[1]) << (30 if match[2] == "GB" else 20)) or None if match else None
