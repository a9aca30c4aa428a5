"""Who floods: nodes that send far more than a node has to say. They are named; what to do about them is an admin's."""

from collections import Counter
from dataclasses import dataclass, field

from weft_contracts.ids import NodeId

WINDOW_S = 10.0
LEASES_S, FACTS_S = 10, 100
"""A second: a node renews its lease every two, and a start of fifty replicas at once says twenty facts."""


@dataclass(slots=True)
class Noise:
    """Counts over ten seconds at a time, on one monotonic clock."""

    loud: dict[NodeId, str] = field(default_factory=dict[NodeId, str])
    """What each node that flooded in the last whole window sent, for people."""
    _leases: Counter[NodeId] = field(default_factory=Counter[NodeId])
    _facts: Counter[NodeId] = field(default_factory=Counter[NodeId])
    _until: float = 0.0

    def lease(self, node: NodeId) -> None:
        self._leases[node] += 1

    def facts(self, node: NodeId, count: int) -> None:
        self._facts[node] += count

    def turn(self, now: float) -> bool:
        """Judge the window once it is over. True if who is loud has changed."""
        if now < self._until:
            return False
        self._until = now + WINDOW_S
        before, self.loud = self.loud, {}
        for counts, most, what in ((self._leases, LEASES_S, "leases"), (self._facts, FACTS_S, "facts")):
            for node, count in counts.items():
                if count > most * WINDOW_S:
                    self.loud[node] = f"{count / WINDOW_S:,.0f} {what} a second"
            counts.clear()
        return self.loud.keys() != before.keys()
