"""Asks all vendors' tools that are here, at once. Where there are none it costs a few looks at paths."""

import asyncio

from weft_worker_agent.domain.accelerators import Look
from weft_worker_agent.outbound.machine.accelerators import amd, apple, intel, vulkan
from weft_worker_agent.outbound.machine.accelerators.nvidia import Nvml, driver_is_there
from weft_worker_agent.outbound.machine.accelerators.unified import board


async def search(nvml: Nvml) -> tuple[Look, ...]:
    """What each tool answered; those that aren't here are left out. Bounded by what the slowest tool may take."""
    looks = await asyncio.gather(_nvidia(nvml), amd.look(), intel.look(), apple.look(), vulkan.look())
    return tuple(look for look in looks if look is not None)


async def _nvidia(nvml: Nvml) -> Look | None:
    shared = board()
    return await nvml.look(shared) if shared is not None or driver_is_there() else None
