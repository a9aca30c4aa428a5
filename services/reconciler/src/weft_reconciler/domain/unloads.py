"""Replicas that an admin wants off their node, and how long those that serve may wait to be replaced."""

from dataclasses import dataclass, field

from weft_contracts.commit import Cause
from weft_contracts.facts.model import Unloaded
from weft_contracts.ids import NodeId, ReplicaId


@dataclass(frozen=True, slots=True)
class Unload:
    """One replica's."""

    node: NodeId
    """Where it must not run, and its replacement neither."""
    waits_until: float
    """Seconds since the epoch: it is retired then, replaced or not."""
    cause: Cause


@dataclass(slots=True)
class Unloads:
    """By replica, until it is retired."""

    marked: dict[ReplicaId, Unload] = field(default_factory=dict[ReplicaId, Unload])

    def note(self, fact: Unloaded, at: float, cause: Cause) -> None:
        """An admin said so, in seconds since the epoch."""
        for replica in fact.replicas:
            self.marked[replica] = Unload(fact.node, at + fact.deadline_s, cause)

    def forget(self, replicas: tuple[ReplicaId, ...]) -> None:
        """They are retired."""
        for replica in replicas:
            self.marked.pop(replica, None)
