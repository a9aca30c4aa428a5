"""Filters in their fixed order: the first no is the reason that a node gives."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.filters.anti_affinity import anti_affinity
from weft_placement.filters.apart import apart
from weft_placement.filters.approved import approved
from weft_placement.filters.backend import backend
from weft_placement.filters.chosen_devices import chosen_devices
from weft_placement.filters.device_capability import device_capability
from weft_placement.filters.disk import disk
from weft_placement.filters.files import files
from weft_placement.filters.formats import formats
from weft_placement.filters.labels import labels
from weft_placement.filters.node_kind import node_kind
from weft_placement.filters.per_model import per_model
from weft_placement.filters.pool import pool
from weft_placement.filters.schedulable import schedulable
from weft_placement.filters.slots import slots

Filter = Callable[[NodeView, NodeAssignments, Demand], str | None]
"""Returns the reason for its no, said of the node: `is draining`. Never with the node's own figures:
equal reasons are counted. What is its own, `own_reasons.py` adds for people."""

FILTERS: tuple[Filter, ...] = (
    node_kind,
    pool,
    chosen_devices,
    labels,
    approved,
    schedulable,
    formats,
    backend,
    device_capability,
    files,
    disk,
    slots,
    per_model,
    apart,
    anti_affinity,
)
"""Before them all comes `avoid`, which looks at the replica and not at its revision."""


Reads = Literal["class", "told", "replicas", "held"]
READS: Mapping[Filter, Reads] = MappingProxyType(
    {
        node_kind: "class",
        pool: "class",
        approved: "class",
        schedulable: "class",
        formats: "class",
        backend: "class",
        device_capability: "class",
        files: "told",
        slots: "replicas",
        per_model: "held",
        apart: "held",
    }
)
"""What a filter reads of a node beside the demand, where that is less than all: what nodes of a class have in common
(`node_class.py`), that and what the node told of files, how many replicas are there, or what is held there of the
demand's model, without which it passes. So many nodes are asked as one; what isn't named here is asked of each."""


def asks(demand: Demand, filter: Filter) -> bool:
    """Whether a filter that reads the whole node can refuse any for this demand."""
    if filter is labels:
        return bool(demand.spec.selector)
    if filter is disk:
        return bool(demand.files)
    if filter is anti_affinity:
        return bool(demand.spec.anti_affinity)
    return demand.chosen is not None if filter is chosen_devices else True
