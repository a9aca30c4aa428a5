"""The ladder: how a replica may lie on devices, the best way first; the processor is the last.

A rung asks one node, but for that of several nodes: a group is a stage of the ranking (`several_nodes.py`), asked only
where no node alone takes the replica on its accelerators.
"""

from collections.abc import Callable
from typing import NamedTuple

from weft_placement.demand import Demand
from weft_placement.device_memory import DeviceMemory
from weft_placement.fit import one_device, partial_offload, processor, several_devices
from weft_placement.fit.option import Miss, Option

Fit = Callable[[list[DeviceMemory], Demand, DeviceMemory | None], Option | Miss]


class Rung(NamedTuple):
    """One way for a replica to lie on devices."""

    name: str
    """For people."""
    key: str
    """For programs."""
    fit: Fit | None
    """None: it asks several nodes."""
    ruled_out: Callable[[Demand], str | None] = lambda demand: None
    """Why it is none for such a replica, whatever the node; None: nodes are to be asked."""


LADDER: tuple[Rung, ...] = (
    Rung(one_device.NAME, "one-device", one_device.fit, one_device.ruled_out),
    Rung(several_devices.NAME, "several-devices", several_devices.fit, several_devices.ruled_out),
    Rung("several nodes", "several-nodes", None),
    Rung(partial_offload.NAME, "partial-offload", partial_offload.fit),
    Rung(processor.NAME, "processor", processor.fit),
)
SEVERAL_NODES = 2
"""Which of them is the one for groups."""
