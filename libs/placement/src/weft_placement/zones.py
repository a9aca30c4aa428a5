"""How many replicas of one model each zone has: what the loss of a zone takes of it.

A zone is what nodes bear as the label `zone`; a node without it is in none, and none is apart from anything.
"""

from collections import Counter

from weft_contracts.ids import ModelId, NodeId
from weft_fleet import NodeAssignments, NodeView

ZONE = "zone"
"""The label."""


class Zones:
    """Follows one model over the nodes, as they are evaluated. Cost: a node's replicas of that model."""

    def __init__(self, model: ModelId) -> None:
        self._model = model
        self._told: dict[NodeId, tuple[str, int]] = {}
        self._held: Counter[str] = Counter()

    def copy(self) -> "Zones":
        """The same, to go on from without changing these."""
        other = Zones(self._model)
        other._told, other._held = dict(self._told), Counter(self._held)
        return other

    def follow(self, node: NodeView, assigned: NodeAssignments) -> tuple[str, str]:
        """Take up what a node holds now; the names of its zone before and now, empty: it is in none."""
        was = self.forget(node.id)
        name = self.zone_of(node)
        if name:
            held = self._staying(assigned)
            self._told[node.id] = (name, held)
            self._held[name] += held
        return was, name

    def forget(self, node: NodeId) -> str:
        """The node is there no more; the zone that it was in."""
        name, held = self._told.pop(node, ("", 0))
        if name:
            self._held[name] -= held
        return name

    def name_of(self, node: NodeId) -> str:
        """The node's zone; empty: it is in none."""
        return self._told.get(node, ("", 0))[0]

    def zone_of(self, node: NodeView) -> str:
        """The zone that a node bears, followed or not; empty: none."""
        return node.labels.get(ZONE, "")

    def held_in(self, name: str) -> int:
        """How many replicas of the model a zone has; 0 for the empty name."""
        return self._held[name] if name else 0

    def held_in_zone_of(self, node: NodeId) -> int:
        """How many replicas of the model the node's zone has; 0 where it is in none."""
        return self.held_in(self.name_of(node))

    def _staying(self, assigned: NodeAssignments) -> int:
        if self._model not in assigned.models:
            return 0
        return sum(each.model == self._model and not each.retiring for each in assigned.assignments.values())
