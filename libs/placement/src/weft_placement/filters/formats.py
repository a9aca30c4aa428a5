"""The version in which the assignment is written."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from weft_contracts.formats import lacking
from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand

_WHAT: Final[Mapping[int, str]] = MappingProxyType(
    {2: "lists and objects in engine_args", 3: "LoRA adapters", 4: "sources that workers fetch", 5: "a layout"}
)
"""What each version of an assignment first says."""


def formats(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node whose worker can't read an assignment of this spec."""
    if demand.spec.needs > 1 and lacking(node.reads, {"node.assigned": demand.spec.needs}):
        return f"has a worker of an earlier version, which can't read {_WHAT[demand.spec.needs]}"
    return None
