"""Intel: `xpu-smi`, where it is.

Form: https://intel.github.io/xpumanager/smi_user_guide.html
"""

from pathlib import Path
from typing import Any

from weft_worker_agent.domain.accelerators import Accelerator, Look
from weft_worker_agent.outbound.machine.accelerators import tool, tool_output
from weft_worker_agent.outbound.machine.accelerators.intel_graphics import is_integrated
from weft_worker_agent.outbound.machine.accelerators.tool import NoAnswer
from weft_worker_agent.outbound.machine.accelerators.tool_output import Row

_MOST = 32


async def look() -> Look | None:
    """What devices there are; None where the tool isn't."""
    if (path := tool.path_of("xpu-smi")) is None:
        return None
    try:
        listed = devices_in(tool_output.parsed("xpu-smi", await tool.ask(path, "discovery", "-j")))
        full: list[Row] = []
        for row in listed[:_MOST]:
            more = tool_output.parsed("xpu-smi", await tool.ask(path, "discovery", "-d", str(row["device_id"]), "-j"))
            full.append({**row, **tool_output.row(more)})
    except NoAnswer as error:
        return Look("intel", unknown=f"Intel's devices are not known: {error}")
    return Look("intel", tuple(accelerator(row) for row in full))


def devices_in(answer: Any) -> list[Row]:
    """The GPUs in the answer of `xpu-smi discovery -j`; of one that is divided, the physical one."""
    listed = tool_output.rows(tool_output.row(answer).get("device_list"))
    gpus = [row for row in listed if row.get("device_type", "GPU") == "GPU" and isinstance(row.get("device_id"), int)]
    physical = [row for row in gpus if str(row.get("device_function_type", "physical")).lower() == "physical"]
    return physical or gpus


def accelerator(row: Row, root: Path = Path("/")) -> Accelerator:
    """A device from the answers of `discovery -j` and `discovery -d N -j` together, and what sysfs knows of it."""
    name = tool_output.text(row.get("device_name")) or "Intel accelerator"
    memory = tool_output.count(row.get("memory_physical_size_byte"))
    uuid, driver = tool_output.text(row.get("uuid")) or "", tool_output.text(row.get("driver_version"))
    place = tool_output.pci(row.get("pci_bdf_address"))
    return Accelerator(
        "intel",
        int(row["device_id"]),
        name,
        memory,
        uuid,
        driver,
        pci=place,
        integrated=is_integrated(place, root),
    )
