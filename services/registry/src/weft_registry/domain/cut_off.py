"""Who sends more than a node's share is cut off: it gets nothing new, its replicas are replaced as a silent node's.

Its credential is revoked with that (`outbound/revocations.py`). Only an admin brings it back, so no cut follows a
return that nobody asked for.
"""

from collections.abc import Iterator, Mapping

from weft_contracts.commit import Cause, Commit, Decision, Guard
from weft_contracts.facts.node import CutOff, NodeFact, WentOffline
from weft_contracts.ids import CorrelationId, NodeId
from weft_contracts.subjects import node as node_of
from weft_fleet import NodeView

from weft_registry.domain.state import RegistryState


def may_be_cut_off(node: NodeView | None) -> bool:
    """Whether there is somebody to cut off: a node that may connect."""
    return node is not None and node.approved and not node.removed and node.cut_off is None


def cut_off(state: RegistryState, floods: Mapping[NodeId, str]) -> Iterator[Decision]:
    """The end of each flood. Its guard is the node's, so that two instances don't cut it off twice."""
    for id, why in floods.items():
        node = state.fleet.nodes.get(id)
        if node is None or not may_be_cut_off(node):
            continue
        # It can't be heard from here on, and nobody needs to wait until that is noticed.
        silent: tuple[NodeFact, ...] = (WentOffline(silent_for=0.0),) if node.presence in _HEARD else ()
        aggregate, cause = node_of(id), Cause(CorrelationId(f"flood-{id}"))
        commit = Commit(aggregate, (CutOff(why=why), *silent), Guard(aggregate, node.sequence), cause)
        yield Decision((commit,), why=f"{node.name} is cut off: {why}")


_HEARD = ("healthy", "unhealthy")
