"""The ladder: how a replica may lie on a node's devices, the simplest way first.

Groups over several nodes and partial offload come after these two: a rung is one more entry here
where it asks one node, and one more stage of the ranking where it asks several.
"""

from collections.abc import Callable

from weft_placement.demand import Demand
from weft_placement.device_memory import DeviceMemory
from weft_placement.fit import one_device, several_devices
from weft_placement.fit.option import Miss, Option

Rung = Callable[[list[DeviceMemory], Demand], Option | Miss]

LADDER: tuple[tuple[str, Rung], ...] = (
    (one_device.NAME, one_device.fit),
    (several_devices.NAME, several_devices.fit),
)
