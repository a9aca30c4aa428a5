"""`/api/nodes`."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from weft_contracts.facts.request import ApprovalRequested
from weft_contracts.ids import NodeId
from weft_placement.fleet import NodeView

from weft_gateway.domain.refused import Refused
from weft_gateway.domain.shapes import node_detail
from weft_gateway.inbound.admin.asking import Asking, done
from weft_gateway.inbound.admin.listing import Cursor, Limit, Source, Word, page
from weft_gateway.projections.directory import Directory


class Nodes:
    """Listing, looking at and approving nodes."""

    def __init__(self, directory: Directory, asking: Asking, lists: Source) -> None:
        self._directory = directory
        self._asking = asking
        self._lists = lists
        self.router = APIRouter(tags=["nodes"])
        self.router.add_api_route("/api/nodes", self.list, methods=["GET"])
        self.router.add_api_route("/api/nodes/{id}", self.get, methods=["GET"])
        self.router.add_api_route("/api/nodes/{id}/approve", self.approve, methods=["POST"])

    async def list(self, after: Cursor = None, limit: Limit = 100, state: Word = None) -> dict[str, Any]:
        """A page of nodes, by id."""
        return await page(self._lists, lambda lists: lists.nodes(after, limit, state), limit)

    async def get(self, id: str) -> dict[str, Any]:
        """One node, with what runs on it and what that claims."""
        node = self._node(id)
        return node_detail(node, self._directory.fleet.held(node.id))

    async def approve(self, request: Request, id: str) -> JSONResponse:
        """Let a node that asked to join work here."""
        return done(await self._asking.ask(request, ApprovalRequested(node=self._node(id).id)))

    def _node(self, id: str) -> NodeView:
        """By id or by name. Raises Refused, 404."""
        nodes = self._directory.fleet.nodes
        found = nodes.get(NodeId(id)) or next((n for n in nodes.values() if n.name == id and not n.removed), None)
        if found is None:
            raise Refused(404, f"Node {id[:128]!r} does not exist.", code="node_not_found")
        return found
