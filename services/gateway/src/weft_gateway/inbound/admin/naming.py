"""What stands for a node in a path: its id, or the name that people type."""

from weft_contracts.ids import NodeId
from weft_fleet import NodeView

from weft_gateway.domain.refused import Refused
from weft_gateway.projections.directory import Directory


def named_node(directory: Directory, ref: str) -> NodeView:
    """By id, a removed one too, or by the name that a node bears now. Raises Refused, 404."""
    nodes = directory.fleet.nodes
    found = nodes.get(NodeId(ref)) or next((n for n in nodes.values() if n.name == ref and not n.removed), None)
    if found is None:
        raise Refused(404, f"Node {ref[:128]!r} does not exist.", code="node_not_found")
    return found
