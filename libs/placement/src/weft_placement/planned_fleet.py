"""The fleet as it will be once the placements that are planned are in the log."""

from collections.abc import Iterable

from weft_contracts.commit import Cause
from weft_contracts.facts.values import Member, ModelSpec
from weft_contracts.ids import NodeId, ReplicaId
from weft_fleet import Assignment, Fleet, NodeAssignments, ReplicaView

from weft_placement.node_index import NodeIndex


class PlannedFleet:
    """A fleet with planned claims over it. The fleet itself is not changed."""

    def __init__(self, fleet: Fleet, index: NodeIndex | None = None) -> None:
        """`index`: of this fleet; with it a ranking needn't ask every node."""
        self.fleet = fleet
        self.index = index
        self.changes: list[NodeId] = []
        """Nodes in the order in which plans changed what they hold."""
        self._planned: dict[NodeId, NodeAssignments] = {}

    def copy(self) -> "PlannedFleet":
        """The same plans, to go on from without changing these."""
        other = PlannedFleet(self.fleet, self.index)
        other._planned = dict(self._planned)
        other.changes = list(self.changes)
        return other

    def assigned(self, node: NodeId) -> NodeAssignments:
        """What replicas hold on a node, the planned ones counted."""
        planned = self._planned.get(node)
        return self.fleet.assigned(node) if planned is None else planned

    def has(self, id: ReplicaId, members: Iterable[Member]) -> bool:
        """Whether a replica holds its part of each of these, planned or not."""
        return all(id in self.assigned(member.node).assignments for member in members)

    def plan(
        self, replica: ReplicaView, members: Iterable[Member], cause: Cause, spec: ModelSpec | None = None
    ) -> None:
        """Count a placement that is decided and not yet in the log. `spec`: of a revision that isn't there either."""
        model = self.fleet.models.get(replica.model)
        files, file_bytes = model.fetched(replica.revision) if model is not None else ("", 0)
        anti_affinity = model.anti_affinity(replica.revision) if model is not None else ""
        anti_affinity = anti_affinity if spec is None else spec.anti_affinity
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
                anti_affinity=anti_affinity,
            )
            self._planned[member.node] = self.assigned(member.node).put(assignment)
            self.changes.append(member.node)

    def withdraw(self, id: ReplicaId, members: Iterable[Member]) -> None:
        """Count a plan no more."""
        for member in members:
            if id in self.assigned(member.node).assignments:
                self._planned[member.node] = self.assigned(member.node).without(id)
                self.changes.append(member.node)

    def release(self, replica: ReplicaView) -> None:
        """Look at the nodes as if this replica held nothing."""
        self.withdraw(replica.id, replica.members)

    def restore(self, replica: ReplicaView, before: "PlannedFleet") -> None:
        """Count a released replica again, as it was counted before."""
        for member in replica.members:
            held = before.assigned(member.node).assignments.get(replica.id)
            if held is not None:
                self._planned[member.node] = self.assigned(member.node).put(held)
                self.changes.append(member.node)
