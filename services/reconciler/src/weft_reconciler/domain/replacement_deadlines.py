"""How long what serves on a draining node, or is unloaded from one, may wait for its replacement."""

from dataclasses import dataclass, field

from weft_contracts.commit import Cause
from weft_contracts.facts.model import Unloaded
from weft_contracts.facts.node import Draining
from weft_contracts.ids import ModelId, NodeId, ReplicaId
from weft_fleet import Fleet, Revision

from weft_reconciler.domain.eligible_nodes import eligible_nodes

DRAIN_SHARE = 0.5
"""Of a drain's deadline: what is left is for running requests to end."""


@dataclass(frozen=True, slots=True)
class DrainDeadline:
    """The last drain that began on a node."""

    waits_until: float
    """Seconds since the epoch: what is not replaced by then is retired all the same."""
    cause: Cause


@dataclass(slots=True)
class DrainDeadlines:
    """By node. Whether a node still drains is the fleet's to say."""

    by_node: dict[NodeId, DrainDeadline] = field(default_factory=dict[NodeId, DrainDeadline])

    def note(self, node: NodeId, fact: Draining, at: float, cause: Cause) -> None:
        """A drain began."""
        self.by_node[node] = DrainDeadline(at + DRAIN_SHARE * fact.deadline_s, cause)

    def waits(self, node: NodeId, fleet: Fleet, model: ModelId, revision: Revision, now: float) -> bool:
        """Whether what serves of a model on a draining node waits for its replacement: another node may take one of
        this revision yet."""
        drain = self.by_node.get(node)
        if drain is None or now >= drain.waits_until:
            return False
        return any(not other.draining for other in eligible_nodes(fleet, model, revision))


@dataclass(frozen=True, slots=True)
class UnloadDeadline:
    """Of one replica that an admin wants off its node."""

    node: NodeId
    """Where it must not run, and its replacement neither."""
    waits_until: float
    """Seconds since the epoch: it is retired then, replaced or not."""
    cause: Cause


@dataclass(slots=True)
class UnloadDeadlines:
    """By replica, until it is retired."""

    by_replica: dict[ReplicaId, UnloadDeadline] = field(default_factory=dict[ReplicaId, UnloadDeadline])

    def note(self, fact: Unloaded, at: float, cause: Cause) -> None:
        """An admin took a model off a node at `at`, in seconds since the epoch."""
        for replica in fact.replicas:
            self.by_replica[replica] = UnloadDeadline(fact.node, at + fact.deadline_s, cause)

    def forget(self, replicas: tuple[ReplicaId, ...]) -> None:
        """They are retired."""
        for replica in replicas:
            self.by_replica.pop(replica, None)
