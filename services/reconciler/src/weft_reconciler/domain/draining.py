"""Draining nodes: how long what serves there may wait for its replacement."""

from dataclasses import dataclass, field

from weft_contracts.commit import Cause
from weft_contracts.facts.node import Draining
from weft_contracts.ids import NodeId


@dataclass(frozen=True, slots=True)
class Drain:
    """The last drain that began on a node."""

    ends_at: float
    """Seconds since the epoch: what is not replaced by then is retired all the same."""
    cause: Cause


@dataclass(slots=True)
class Drains:
    """By node. Whether a node still drains is the fleet's to say."""

    begun: dict[NodeId, Drain] = field(default_factory=dict[NodeId, Drain])

    def note(self, node: NodeId, fact: Draining, at: float, cause: Cause) -> None:
        """A drain began."""
        self.begun[node] = Drain(at + fact.deadline_s, cause)
