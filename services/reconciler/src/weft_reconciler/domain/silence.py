"""Which nodes are lost: offline for the registry, and heard to be so by this decider."""

from dataclasses import dataclass, field

from weft_contracts.commit import Cause
from weft_contracts.facts.node import WentOffline
from weft_contracts.ids import NodeId

from weft_reconciler.domain.moment import Moment


@dataclass(frozen=True, slots=True)
class Offline:
    """A node's last `offline`."""

    at: float
    cause: Cause


@dataclass(slots=True)
class Silence:
    """When nodes went offline."""

    offline: dict[NodeId, Offline] = field(default_factory=dict[NodeId, Offline])

    def note(self, node: NodeId, fact: WentOffline, at: float, cause: Cause) -> None:
        """The registry gave a node up."""
        self.offline[node] = Offline(at, cause)

    def lasts(self, node: NodeId, moment: Moment) -> bool:
        """Whether an offline node may be taken for lost. One that went before this decider looked may return."""
        offline = self.offline.get(node)
        if offline is None or offline.at > moment.since:
            return True
        return moment.waited(offline.at) >= moment.limits.return_grace
