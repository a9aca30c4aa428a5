"""Which nodes read what is written in the newest versions."""

from collections.abc import Iterable

from weft_contracts.formats import WORKERS_READ, lacking

from weft_fleet.node_view import NodeView


def workers_behind(nodes: Iterable[NodeView]) -> list[NodeView]:
    """Workers that are in the mesh, be they away, and don't read all that may be written to them; by name.

    A node that waits for approval is assigned nothing, and an agent never is.
    """
    behind = (
        node
        for node in nodes
        if node.approved and not node.removed and node.kind == "worker" and lacking(node.reads, WORKERS_READ)
    )
    return sorted(behind, key=lambda node: node.name)
