"""Which node's copy of files that were sent is the one that stays: no source has them, so the mesh must."""

from weft_contracts.facts.source import UploadSource
from weft_contracts.ids import NodeId

from weft_fleet.files_needed import files_held
from weft_fleet.live_revisions import live_revisions
from weft_fleet.tables import FleetTables


def kept_for(fleet: FleetTables, files: str, node: NodeId) -> str | None:
    """The name of a deployed model for which a node's copy of files stays, whatever else would have its room; None:
    it may go.

    That is so for files that were sent, unless another machine that can be counted on has them and comes before this
    node's own (by the least id of those there that have them): so of two that ask at once, one keeps them. Nodes with
    one host are one machine, as they may share a store.
    """
    if (model := _sent(fleet, files)) is None:
        return None
    holders = [node, *(id for id in files_held(fleet, files) if _counts(fleet, id))]
    first: dict[str, NodeId] = {}
    for id in holders:
        host = fleet.nodes[id].addresses.host
        first[host] = min(first.get(host, id), id)
    own = first[fleet.nodes[node].addresses.host]
    return None if min(first.values()) < own else model


def _sent(fleet: FleetTables, files: str) -> str | None:
    """A model of which a live revision names these files as sent ones."""
    for id in fleet.naming.get(files, ()):
        model = fleet.models[id]
        for number in live_revisions(fleet, model):
            if model.files.get(number) == files and isinstance(model.specs[number][1].source, UploadSource):
                return model.name
    return None


def _counts(fleet: FleetTables, id: NodeId) -> bool:
    """Whether a node is there, and stays."""
    node = fleet.nodes[id]
    stays = not node.removed and node.cut_off is None and node.approved and node.drain is None
    return stays and node.presence == "healthy"
