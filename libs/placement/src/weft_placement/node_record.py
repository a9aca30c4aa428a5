"""What the index has of each node: its own figures, and what it has in common with others."""

from dataclasses import dataclass
from typing import NamedTuple

from weft_contracts.ids import NodeId
from weft_fleet import NodeAssignments, NodeView

from weft_placement.device_memory import PROCESSOR, free_memory
from weft_placement.filters.disk import promised
from weft_placement.zones import ZONE


class NodeClass:
    """Stands for all that `class_of` tells of a node: the same object for the same."""


class Crowd(NamedTuple):
    """Nodes that little but their free memory tells apart: the class, the zone, and how many replicas there are."""

    kind: NodeClass
    zone: str
    replicas: int


@dataclass(slots=True)
class NodeRecord:
    """One node's own figures."""

    id: NodeId
    crowd: Crowd
    free: tuple[int, ...]
    """Of each accelerator, the least first; where they are of one vendor."""
    most: int
    """Of them, the largest; -1: it has none."""
    host: int
    """Free of the processor's memory; -1: it tells of none."""
    host_total: int
    budgeted: tuple[bool, bool]
    """Whether a budget is what leaves no more: of an accelerator, of the processor."""
    disk: int | None
    """Bytes of the disk that are free and not promised to any files; None: not known."""
    install_disk: int | None
    """Bytes that are free of the disk that takes engines; None: not known."""


def record_of(view: NodeView, assigned: NodeAssignments, kind: NodeClass) -> NodeRecord:
    """The record of a node of this class. Cost: a look at its devices, and at the files that it is to have."""
    free: list[int] = []
    host = host_total = -1
    on_device = on_host = False
    for memory in free_memory(view, assigned):
        if memory.vendor != "cpu":
            free.append(memory.free)
            on_device = on_device or memory.budgeted
        elif memory.device_index == PROCESSOR:
            host, host_total, on_host = memory.free, memory.total, memory.budgeted
    free.sort()
    hardware, installs = view.hardware, view.installs
    disk = hardware.disk_free if hardware is not None else None
    return NodeRecord(
        id=view.id,
        crowd=Crowd(kind, view.labels.get(ZONE, ""), assigned.replicas),
        free=tuple(free),
        most=free[-1] if free else -1,
        host=host,
        host_total=host_total,
        budgeted=(on_device, on_host),
        disk=None if disk is None else disk - promised(view, assigned, ""),
        install_disk=None if installs is None else installs.disk_free,
    )
