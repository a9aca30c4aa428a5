"""Where a ready replica is reached, as the log tells it."""

from dataclasses import dataclass

from weft_contracts.ids import EventId, Incarnation, ModelId, NodeId, ReplicaId


@dataclass(frozen=True, slots=True)
class Target:
    """One run that counts. Another start of the replica is another target."""

    replica: ReplicaId
    model: ModelId
    revision: int
    digest: str
    """Of the assignment: sessions name it, and only equal ones may stand in for one another."""
    node: NodeId
    host: str
    """The node's registered address, never what a run says."""
    port: int
    incarnation: Incarnation
    event_id: EventId
    """Of the run's `ready`."""
    concurrency: int
    """Requests that it runs at once."""
    preferred: bool
    """False while the node's lease is late or it drains: others are chosen where there are any."""

    @property
    def address(self) -> str:
        """`host:port`, an IPv6 host in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
