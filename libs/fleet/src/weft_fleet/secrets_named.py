"""Which secrets are named where: by models, and by what nodes were given to run."""

from collections.abc import Iterator

from weft_contracts.ids import NodeId
from weft_contracts.source_keys import secret_of
from weft_contracts.spec_secrets import secrets_of

from weft_fleet.live_revisions import live_revisions
from weft_fleet.model_view import ModelView
from weft_fleet.node_view import NodeView
from weft_fleet.tables import FleetTables


def models_naming(fleet: FleetTables, secret: str) -> list[str]:
    """Names of models of which a live revision names a secret: the newest, the kept one, or one with replicas."""
    live = [model for model in fleet.models.values() if not model.deleted or model.replicas]
    return sorted(model.name for model in live if _names(fleet, model, secret))


def wishes_naming(fleet: FleetTables, secret: str) -> list[tuple[str, str]]:
    """Names of models whose files a node is to have ahead of need from a source that names a secret, and the node's,
    whether the files are there or not: what is damaged is fetched anew. One look at every node."""
    nodes = (node for node in fleet.nodes.values() if not node.removed)
    found = ((node, each) for node in nodes for each in node.file_wishes.wanted.values())
    return sorted((each.model_name, node.name) for node, each in found if secret_of(each.source) == secret)


def secrets_by_node(fleet: FleetTables) -> dict[NodeId, set[str]]:
    """What each node's present assignments name, and the sources that it was asked to look at or to fetch from,
    whether it is there or not. One look at every node, every model and its specs."""
    found = {id: named for id, view in fleet.nodes.items() if (named := set(_of_sources(view)))}
    for model in fleet.models.values():
        named = {number: secrets_of(spec) for number, (_, spec) in model.specs.items()}
        for id in model.replicas if any(named.values()) else ():
            for member in fleet.replicas[id].members:
                part = fleet.assignment(member.node, id)
                if part is not None and part.holds and (names := named.get(part.revision)):
                    found.setdefault(member.node, set()).update(names)
    return found


def node_names(fleet: FleetTables, node: NodeId, secret: str) -> bool:
    """Whether a present assignment of a node names a secret, or a source that it is to look at or to fetch from."""
    view = fleet.nodes.get(node)
    if view is not None and secret in _of_sources(view):
        return True
    for part in fleet.assigned(node).assignments.values():
        model = fleet.models.get(part.model)
        spec = model.specs.get(part.revision) if model is not None else None
        if part.holds and spec is not None and secret in secrets_of(spec[1]):
            return True
    return False


def _of_sources(node: NodeView) -> Iterator[str]:
    yield from (asked.secret for asked in node.asked.values() if asked.secret)
    yield from (named for wanted in node.file_wishes.wanted.values() if (named := secret_of(wanted.source)))


def _names(fleet: FleetTables, model: ModelView, secret: str) -> bool:
    return any(secret in secrets_of(model.specs[each][1]) for each in live_revisions(fleet, model))
