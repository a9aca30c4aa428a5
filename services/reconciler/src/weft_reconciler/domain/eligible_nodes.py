"""Which nodes could run a revision of a model, whatever else runs there now and however they are just then."""

from collections.abc import Iterator

from weft_contracts.ids import ModelId, NodeId
from weft_fleet import Fleet, NodeView, Revision
from weft_placement.claim import ClaimUnknown
from weft_placement.demand import Demand, demand_of
from weft_placement.filters.approved import approved
from weft_placement.filters.backend import backend
from weft_placement.filters.chosen_devices import chosen_devices
from weft_placement.filters.device_capability import device_capability
from weft_placement.filters.files import files
from weft_placement.filters.labels import labels
from weft_placement.filters.pool import pool
from weft_placement.kept_recipe import recipes_for
from weft_placement.policy import Policy

_LASTING = (pool, chosen_devices, labels, approved, backend, device_capability, files)
"""The filters that no other replica and no drain changes."""


def eligible_ids(fleet: Fleet, model: ModelId, revision: Revision) -> set[NodeId]:
    """Nodes of the mesh that bear the wanted labels, have the engine and hold the files."""
    return {node.id for node in eligible_nodes(fleet, model, revision)}


def eligible_nodes(fleet: Fleet, model: ModelId, revision: Revision) -> Iterator[NodeView]:
    """The same one by one: who looks for any of them asks no more nodes than it must."""
    try:
        recipes = recipes_for(fleet, model, revision.number)
        demand = demand_of(model, revision.number, revision.spec, Policy(slots=1), fleet.engines, recipes)
    except ClaimUnknown:
        return
    for id, node in fleet.nodes.items():
        if not node.gone and _passes(fleet, id, demand):
            yield node


def _passes(fleet: Fleet, id: NodeId, demand: Demand) -> bool:
    node, held = fleet.nodes[id], fleet.assigned(id)
    return all(passes(node, held, demand) is None for passes in _LASTING)
