"""Which nodes are lost: offline for the registry, and for so long that this decider may believe it."""

from dataclasses import dataclass, field

from weft_contracts.commit import Cause
from weft_contracts.facts.node import WentOffline
from weft_contracts.ids import NodeId

from weft_reconciler.domain.decision_time import DecisionTime


@dataclass(frozen=True, slots=True)
class OfflineSince:
    """A node's last `offline`."""

    at: float
    cause: Cause


@dataclass(slots=True)
class OfflineNodes:
    """When nodes went offline."""

    by_node: dict[NodeId, OfflineSince] = field(default_factory=dict[NodeId, OfflineSince])

    def note(self, node: NodeId, fact: WentOffline, at: float, cause: Cause) -> None:
        """The registry called a node offline."""
        self.by_node[node] = OfflineSince(at, cause)

    def is_lost(self, node: NodeId, time: DecisionTime) -> bool:
        """Whether an offline node may be taken for lost. One that went before this decider looked may return."""
        offline = self.by_node.get(node)
        if offline is None or offline.at > time.since:
            return True
        return time.waited(offline.at) >= time.timeouts.return_grace
