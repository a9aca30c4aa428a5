"""`/api/nodes/{id}/labels`: what an admin says of a node's labels, over what it says of itself."""

from typing import Annotated, Literal

from fastapi import APIRouter, Body, Request
from pydantic import Field
from weft_api import Labels, LabelsChanged
from weft_contracts.facts.request import LabelsRequested
from weft_contracts.ids import NodeId

from weft_gateway.domain.refused import Refused
from weft_gateway.domain.shapes import labels_shape
from weft_gateway.inbound.admin.asking import Asking
from weft_gateway.inbound.admin.bodies import LabelName, LabelValue
from weft_gateway.inbound.admin.naming import named_node
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.json_route import JSONRoute
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.projections.directory import Directory

Whole = Annotated[dict[LabelName, LabelValue], Field(max_length=64), Body()]
Some = Annotated[dict[LabelName, LabelValue | None], Field(max_length=64), Body()]
How = Literal["merge", "replace", "return"]


class NodeLabels:
    """Every change answers with the labels as they are then."""

    def __init__(self, directory: Directory, asking: Asking) -> None:
        self._directory = directory
        self._asking = asking
        self.router = APIRouter(tags=["nodes"], responses=PROBLEMS, route_class=JSONRoute)
        add = answering(self.router)
        add("/api/nodes/{id}/labels", self.get, "GET")
        add("/api/nodes/{id}/labels", self.replace, "PUT")
        add("/api/nodes/{id}/labels", self.merge, "PATCH")
        add("/api/nodes/{id}/labels", self.give_back, "DELETE")
        add("/api/nodes/{id}/labels/{name:path}", self.take_away, "DELETE")

    async def get(self, id: str) -> Answer[Labels]:
        """What a node bears, what it says of itself, what an admin set (null: took away)."""
        return Answer(labels_shape(named_node(self._directory, id)))

    async def replace(self, request: Request, id: str, labels: Whole) -> Answer[LabelsChanged]:
        """Let the node bear these labels and no others, until it says new ones of itself."""
        return await self._changed(request, id, "replace", {**labels})

    async def merge(self, request: Request, id: str, labels: Some) -> Answer[LabelsChanged]:
        """Set the labels that have a value, take those away that are null, leave the others."""
        return await self._changed(request, id, "merge", labels)

    async def give_back(self, request: Request, id: str) -> Answer[LabelsChanged]:
        """Leave all labels to the node itself again."""
        return await self._changed(request, id, "return", {})

    async def take_away(self, request: Request, id: str, name: str) -> Answer[LabelsChanged]:
        """Take one label away, whoever set it."""
        node = named_node(self._directory, id)
        if name not in node.labels and request.headers.get("idempotency-key") is None:
            raise Refused(404, f"Node {node.name!r} bears no label {name[:63]!r}.", code="label_not_found")
        return await self._changed(request, id, "merge", {name: None})

    async def _changed(
        self, request: Request, ref: str, how: How, labels: dict[str, str | None]
    ) -> Answer[LabelsChanged]:
        node: NodeId = named_node(self._directory, ref).id
        view = await self._asking.ask(request, LabelsRequested(node=node, how=how, labels=labels))
        return Answer({"request": view.id, "node": node, **labels_shape(self._directory.fleet.nodes[node])})
