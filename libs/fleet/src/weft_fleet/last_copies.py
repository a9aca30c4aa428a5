"""Which copy of files that were sent is the one that stays: no source has them, so the mesh must."""

from collections.abc import Mapping
from dataclasses import dataclass

from weft_contracts.facts.source import UploadSource
from weft_contracts.formats import lacking
from weft_contracts.ids import NodeId

from weft_fleet.files_needed import files_held
from weft_fleet.live_revisions import live_revisions
from weft_fleet.node_view import NodeView
from weft_fleet.tables import FleetTables


@dataclass(frozen=True, slots=True)
class LastCopies:
    """Of files that were sent and are deployed."""

    files: str
    model: str
    """The name of one that they are of."""
    machines: Mapping[str, NodeId]
    """By their hosts: the least id of those nodes there whose copies are counted on."""

    def stays(self, node: NodeView) -> bool:
        """Whether a node's copy stays, whatever else would have its room."""
        if _goes(node, self.files):
            return False
        own = min(self.machines.get(node.addresses.host, node.id), node.id)
        return min(self.machines.values(), default=own) >= own


def last_copies(fleet: FleetTables, files: str) -> LastCopies | None:
    """Which nodes' copies of files stay; None: none has to. Costs a look at each that has them.

    That is so for files that were sent, unless another machine that can be counted on has them and comes before a
    node's own (by the least id of those there that have them): so of two that ask at once, one keeps them. Nodes with
    one host are one machine, as they may share a store: what one of them was told to remove, the others have no more.
    What a node itself was told to remove goes.
    """
    if (sent := _sent(fleet, files)) is None:
        return None
    model, version = sent
    held = [fleet.nodes[id] for id in files_held(fleet, files)]
    going = {view.addresses.host for view in held if _goes(view, files)}
    machines: dict[str, NodeId] = {}
    for view in held:  # by id
        if _counts(view, version) and view.addresses.host not in going:
            machines.setdefault(view.addresses.host, view.id)
    return LastCopies(files, model, machines)


def _sent(fleet: FleetTables, files: str) -> tuple[str, int] | None:
    """A model of which a live revision names these files as sent ones, and the version of `node.assigned` that says
    it."""
    for id in fleet.naming.get(files, ()):
        model = fleet.models[id]
        for number in live_revisions(fleet, model):
            spec = model.specs[number][1]
            if model.files.get(number) == files and isinstance(spec.source, UploadSource):
                return model.name, spec.needs
    return None


def _goes(node: NodeView, files: str) -> bool:
    return node.file_wishes.retired.get(files, False)


def _counts(node: NodeView, version: int) -> bool:
    """Whether a node is there and stays, with a worker that knows of such files: one that was put back to an older
    release has them no more for anybody."""
    stays = not node.removed and node.cut_off is None and node.approved and node.drain is None
    return stays and node.presence == "healthy" and not lacking(node.reads, {"node.assigned": version})
