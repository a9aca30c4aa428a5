"""What an admin lets a node take at most: `/api/nodes/{id}/max-replicas-per-model` and `…/vram-budget`."""

from fastapi import APIRouter, Request
from weft_api import CapsChanged
from weft_contracts.facts.request import ReplicaCapRequested, VramBudgetRequested
from weft_contracts.ids import NodeId

from weft_gateway.domain.value_shapes import caps_shape
from weft_gateway.inbound.admin.asking import Asking
from weft_gateway.inbound.admin.bodies import BudgetBody, ReplicaCapBody
from weft_gateway.inbound.admin.naming import named_node
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.json_route import JSONRoute
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.projections.directory import Directory


class NodeCaps:
    """Every change answers with the caps as they are then."""

    def __init__(self, directory: Directory, asking: Asking) -> None:
        self._directory = directory
        self._asking = asking
        self.router = APIRouter(tags=["nodes"], responses=PROBLEMS, route_class=JSONRoute)
        add = answering(self.router)
        add("/api/nodes/{id}/max-replicas-per-model", self.put_replicas, "PUT")
        add("/api/nodes/{id}/max-replicas-per-model", self.give_replicas_back, "DELETE")
        add("/api/nodes/{id}/vram-budget", self.put_budget, "PUT")
        add("/api/nodes/{id}/vram-budget", self.give_budget_back, "DELETE")

    async def put_replicas(self, request: Request, id: str, body: ReplicaCapBody) -> Answer[CapsChanged]:
        """So many replicas of one model on this node at most; 0: no cap. What runs there runs on."""
        node = self._node(id)
        return await self._changed(request, ReplicaCapRequested(node=node, replicas_per_model=body.value))

    async def give_replicas_back(self, request: Request, id: str) -> Answer[CapsChanged]:
        """What the worker itself says holds again."""
        return await self._changed(request, ReplicaCapRequested(node=self._node(id), replicas_per_model=None))

    async def put_budget(self, request: Request, id: str, body: BudgetBody) -> Answer[CapsChanged]:
        """So much of each device for replicas at most: `80%`, `0.8`, `12GB`, `12GiB`; empty: no limit."""
        return await self._changed(request, VramBudgetRequested(node=self._node(id), budget=body.budget))

    async def give_budget_back(self, request: Request, id: str) -> Answer[CapsChanged]:
        """What the worker itself says holds again."""
        return await self._changed(request, VramBudgetRequested(node=self._node(id), budget=None))

    def _node(self, ref: str) -> NodeId:
        return named_node(self._directory, ref).id

    async def _changed(self, request: Request, fact: ReplicaCapRequested | VramBudgetRequested) -> Answer[CapsChanged]:
        view = await self._asking.ask(request, fact)
        caps = self._directory.fleet.nodes[fact.node].caps
        return Answer({"request": view.id, "node": fact.node, "caps": caps_shape(caps)})
