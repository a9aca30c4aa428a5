"""Filters in their fixed order: the first no is the reason that a node gives."""

from collections.abc import Callable

from weft_placement.demand import Demand
from weft_placement.filters.apart import apart
from weft_placement.filters.approved import approved
from weft_placement.filters.backend import backend
from weft_placement.filters.files import files
from weft_placement.filters.labels import labels
from weft_placement.filters.open import open_to_replicas
from weft_placement.filters.per_model import per_model
from weft_placement.filters.slots import slots
from weft_placement.filters.works import works
from weft_placement.fleet import Held, NodeView

Filter = Callable[[NodeView, Held, Demand], str | None]
"""Returns the reason for its no, said of the node: `is draining`. Never with the node's own figures:
equal reasons are counted."""

FILTERS: tuple[Filter, ...] = (works, labels, approved, open_to_replicas, backend, files, slots, per_model, apart)
"""Before them all comes `avoid`, which asks the replica and not its revision."""
