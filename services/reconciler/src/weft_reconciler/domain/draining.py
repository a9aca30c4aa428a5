"""Draining nodes: how long what serves there may wait for its replacement."""

from dataclasses import dataclass, field

from weft_contracts.commit import Cause
from weft_contracts.facts.node import Draining
from weft_contracts.ids import NodeId
from weft_placement.fleet import Fleet, ModelView

from weft_reconciler.domain.eligible import able

WAITS = 0.5
"""Of a drain's deadline: what is left is for running requests to end."""


@dataclass(frozen=True, slots=True)
class Drain:
    """The last drain that began on a node."""

    waits_until: float
    """Seconds since the epoch: what is not replaced by then is retired all the same."""
    cause: Cause


@dataclass(slots=True)
class Drains:
    """By node. Whether a node still drains is the fleet's to say."""

    begun: dict[NodeId, Drain] = field(default_factory=dict[NodeId, Drain])

    def note(self, node: NodeId, fact: Draining, at: float, cause: Cause) -> None:
        """A drain began."""
        self.begun[node] = Drain(at + WAITS * fact.deadline_s, cause)

    def waits(self, node: NodeId, fleet: Fleet, model: ModelView, now: float) -> bool:
        """Whether what serves of a model on a draining node waits for its replacement: another node may take it yet."""
        drain = self.begun.get(node)
        if drain is None or now >= drain.waits_until:
            return False
        return any(not other.draining for other in able(fleet, model))
