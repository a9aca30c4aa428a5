"""What the registry remembers of drains under way: what follows from them, and what did not finish in time."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft_contracts.commit import Cause, Recorded
from weft_contracts.facts.node import Draining, Removed, Resumed
from weft_contracts.facts.run import Stopped
from weft_contracts.ids import NodeId, ReplicaId


@dataclass(slots=True)
class DrainState:
    """By node, from `draining` on."""

    causes: dict[NodeId, Cause] = field(default_factory=dict[NodeId, Cause])
    """Of what follows from each drain."""
    unfinished: dict[NodeId, Mapping[ReplicaId, int]] = field(default_factory=dict[NodeId, Mapping[ReplicaId, int]])
    """Requests that still ran when their replica's time was up."""

    def of_node(self, node: NodeId, recorded: Recorded) -> None:
        """Fold a commit of a node."""
        for fact in recorded.facts:
            match fact:
                case Draining():
                    self.causes[node] = recorded.cause
                    self.unfinished.pop(node, None)
                case Resumed() | Removed():
                    self.causes.pop(node, None)
                    self.unfinished.pop(node, None)
                case _:
                    pass

    def of_run(self, node: NodeId, replica: ReplicaId, recorded: Recorded) -> None:
        """Fold a commit of a run."""
        if node not in self.causes:
            return
        for fact in recorded.facts:
            if isinstance(fact, Stopped) and fact.unfinished:
                self.unfinished[node] = {**self.unfinished.get(node, {}), replica: fact.unfinished}
