"""The fleet as it will be once the placements that are planned are in the log."""

from collections.abc import Iterable

from weft_contracts.commit import Cause
from weft_contracts.facts.values import Member
from weft_contracts.ids import NodeId
from weft_fleet import Assignment, Fleet, NodeAssignments, ReplicaView


class PlannedFleet:
    """A fleet with planned claims over it. The fleet itself is not changed."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.changes: list[NodeId] = []
        """Nodes in the order in which plans changed what they hold."""
        self._planned: dict[NodeId, NodeAssignments] = {}

    def assigned(self, node: NodeId) -> NodeAssignments:
        """What replicas hold on a node, the planned ones counted."""
        planned = self._planned.get(node)
        return self.fleet.assigned(node) if planned is None else planned

    def plan(self, replica: ReplicaView, members: Iterable[Member], cause: Cause) -> None:
        """Count a placement that is decided and not yet in the log."""
        model = self.fleet.models.get(replica.model)
        files, file_bytes = model.fetched(replica.revision) if model is not None else ("", 0)
        for member in members:
            assignment = Assignment(
                replica=replica.id,
                model=replica.model,
                revision=replica.revision,
                digest=replica.digest,
                epoch=replica.epoch + 1,
                rank=member.rank,
                devices=member.devices,
                sequence=0,
                cause=cause,
                files=files,
                file_bytes=file_bytes,
            )
            self._planned[member.node] = self.assigned(member.node).put(assignment)
            self.changes.append(member.node)

    def release(self, replica: ReplicaView) -> None:
        """Look at the nodes as if this replica held nothing."""
        for member in replica.members:
            if replica.id in self.assigned(member.node).assignments:
                self._planned[member.node] = self.assigned(member.node).without(replica.id)
                self.changes.append(member.node)
