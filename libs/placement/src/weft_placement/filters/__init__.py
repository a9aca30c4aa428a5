"""Filters in their fixed order: the first no is the reason that a node gives."""

from collections.abc import Callable

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.filters.apart import apart
from weft_placement.filters.approved import approved
from weft_placement.filters.backend import backend
from weft_placement.filters.disk import disk
from weft_placement.filters.files import files
from weft_placement.filters.formats import formats
from weft_placement.filters.labels import labels
from weft_placement.filters.node_kind import node_kind
from weft_placement.filters.per_model import per_model
from weft_placement.filters.schedulable import schedulable
from weft_placement.filters.slots import slots

Filter = Callable[[NodeView, NodeAssignments, Demand], str | None]
"""Returns the reason for its no, said of the node: `is draining`. Never with the node's own figures:
equal reasons are counted."""

FILTERS: tuple[Filter, ...] = (
    node_kind,
    labels,
    approved,
    schedulable,
    formats,
    backend,
    files,
    disk,
    slots,
    per_model,
    apart,
)
"""Before them all comes `avoid`, which looks at the replica and not at its revision."""
