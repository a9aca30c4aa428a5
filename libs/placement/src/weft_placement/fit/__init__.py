"""The ladder: how a replica may lie on a node's devices, the simplest way first.

A replica whose spec says how many of its layers lie on an accelerator takes the first rung: part of it on one device.
Groups over several nodes, and partial offload without being told, come after these two: a rung is one more entry here
where it asks one node, and one more stage of the ranking where it asks several.
"""

from collections.abc import Callable

from weft_placement.demand import Demand
from weft_placement.device_memory import DeviceMemory
from weft_placement.fit import one_device, several_devices
from weft_placement.fit.option import Miss, Option

Rung = Callable[[list[DeviceMemory], Demand, DeviceMemory | None], Option | Miss]

LADDER: tuple[tuple[str, Rung], ...] = (
    (one_device.NAME, one_device.fit),
    (several_devices.NAME, several_devices.fit),
)
