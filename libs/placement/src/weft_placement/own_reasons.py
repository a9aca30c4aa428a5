"""What of a filter's reason is a node's own: said of that node in an explanation, and counted without it."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.filters import Filter
from weft_placement.filters.anti_affinity import anti_affinity, told_other
from weft_placement.filters.device_capability import device_capability, told_devices
from weft_placement.filters.disk import disk, told_disk
from weft_placement.filters.labels import labels, told_labels
from weft_placement.filters.per_model import per_model, told_cap
from weft_placement.filters.pool import pool, told_pool

TOLD: Final[Mapping[Filter, Callable[[NodeView, NodeAssignments, Demand], str]]] = MappingProxyType(
    {
        pool: told_pool,
        labels: told_labels,
        device_capability: told_devices,
        disk: told_disk,
        per_model: told_cap,
        anti_affinity: told_other,
    }
)
"""By filter; what is told is empty where the node says nothing of it."""


def with_own(node: NodeView, assigned: NodeAssignments, demand: Demand, reason: str) -> str:
    """A node's reason, with what is its own behind it."""
    for filter, told in TOLD.items():
        if reason == filter(node, assigned, demand):
            own = told(node, assigned, demand)
            return f"{reason}; {own}" if own else reason
    return reason
