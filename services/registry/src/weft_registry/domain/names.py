"""Names of nodes: one node each, whatever the case of their letters, and none is written as another node's id is."""

from weft_contracts.commit import Cause, Commit, Guard
from weft_contracts.facts.name import Claimed, Released
from weft_contracts.ids import NodeId, is_node_id
from weft_contracts.subjects import Aggregate
from weft_contracts.subjects import name as name_of
from weft_fleet import NodeView

from weft_registry.domain.state import RegistryState


def taken(state: RegistryState, name: str, id: NodeId) -> str | None:
    """Why a new node can't have this name: another bears it, or one that differs by the case of letters alone."""
    claim = state.names.get(_aggregate(name))
    borne = claim.owner if claim is not None and claim.owner != id else None
    if borne is None:  # names from before letters' case was passed over are claimed as they are written
        same = (each for each in state.fleet.nodes.values() if each.name.casefold() == name.casefold())
        borne = next((each.id for each in same if not each.removed and each.id != id), None)
    if borne is None:
        return None
    other = state.fleet.nodes.get(NodeId(borne))
    if other is None or other.name == name:
        return f"another node bears the name {name!r}: choose another, or have an admin replace it"
    return f"a node bears the name {other.name!r}, which differs from {name!r} by the case of letters alone"


_OF_ROUTES = frozenset({"scheduling"})
"""What stands in the API where a node's name may stand."""


def shadowed(name: str) -> bool:
    """Whether a node of this name could not be asked for by it: the API has something else there."""
    return name.casefold() in _OF_ROUTES


def misleading(name: str, id: NodeId) -> bool:
    """Whether a name would be taken for another node's id."""
    return is_node_id(name) and name != id


def claimed(state: RegistryState, name: str, id: NodeId, cause: Cause) -> tuple[Commit, ...]:
    """The commit that makes a free name a node's; none where it is its own already."""
    aggregate = _aggregate(name)
    claim = state.names.get(aggregate)
    if claim is not None and claim.owner == id:
        return ()
    guard = Guard(aggregate, claim.sequence if claim is not None else 0)
    return (Commit(aggregate, (Claimed(name=name, owner=id),), guard, cause),)


def released(state: RegistryState, node: NodeView, cause: Cause) -> tuple[Commit, ...]:
    """The commits that free a node's name: it may be claimed as it is written, from before."""
    found: list[Commit] = []
    for aggregate in dict.fromkeys((_aggregate(node.name), name_of("node", node.name))):
        claim = state.names.get(aggregate)
        if claim is not None and claim.owner == node.id:
            found.append(Commit(aggregate, (Released(),), Guard(aggregate, claim.sequence), cause))
    return tuple(found)


def _aggregate(name: str) -> Aggregate:
    return name_of("node", name.casefold())
