"""The fleet as it will be once the placements of this round are in the log."""

from collections.abc import Iterable

from weft_contracts.commit import Cause
from weft_contracts.facts.values import Member
from weft_contracts.ids import NodeId

from weft_placement.fleet import Assignment, Fleet, Held, ReplicaView


class Outlook:
    """A fleet with planned claims over it. The fleet itself is not changed."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.log: list[NodeId] = []
        """Nodes in the order in which plans changed them."""
        self._planned: dict[NodeId, Held] = {}

    def held(self, node: NodeId) -> Held:
        """What replicas hold on a node, the planned ones counted."""
        planned = self._planned.get(node)
        return self.fleet.held(node) if planned is None else planned

    def plan(self, replica: ReplicaView, members: Iterable[Member], cause: Cause) -> None:
        """Count a placement that is decided and not yet in the log."""
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
            )
            self._planned[member.node] = self.held(member.node).put(assignment)
            self.log.append(member.node)

    def lift(self, replica: ReplicaView) -> None:
        """Look at the nodes as if this replica held nothing."""
        for member in replica.members:
            if replica.id in self.held(member.node).assignments:
                self._planned[member.node] = self.held(member.node).without(replica.id)
                self.log.append(member.node)
