"""`/api/nodes`: what admins see of nodes, and who may work here."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field
from weft_api import NodeChanged, NodeDetail, NodeLeaves, NodePage
from weft_contracts.facts.request import (
    ApprovalRequested,
    ChangeRequest,
    CordonRequested,
    DrainRequested,
    RejectionRequested,
    RemovalRequested,
    ResumeRequested,
    UncordonRequested,
)

from weft_gateway.domain.node_bodies import DRAIN_S, MAX_REASON
from weft_gateway.domain.shapes import node_detail
from weft_gateway.inbound.admin.asking import Asking, arisen, done
from weft_gateway.inbound.admin.bodies import DrainBody, DrainSeconds, ReasonBody, RejectBody
from weft_gateway.inbound.admin.listing import PRINTABLE, Cursor, Limit, Source, Word, page
from weft_gateway.inbound.admin.naming import named_node
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.json_route import JSONRoute
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.inbound.nodes.heartbeats import Heartbeats
from weft_gateway.projections.directory import Directory

Label = Annotated[
    list[Annotated[str, Field(pattern=PRINTABLE)]] | None,
    Query(max_length=16, description="`name=value`, or `name` for any value; all must fit"),
]


class Nodes:
    """Listing, looking at, approving, rejecting, cordoning, draining and removing nodes."""

    def __init__(self, directory: Directory, asking: Asking, lists: Source, heartbeats: Heartbeats) -> None:
        self._directory = directory
        self._asking = asking
        self._lists = lists
        self._heartbeats = heartbeats
        self.router = APIRouter(tags=["nodes"], responses=PROBLEMS, route_class=JSONRoute)
        add = answering(self.router)
        add("/api/nodes", self.list, "GET")
        add("/api/nodes/{id}", self.get, "GET")
        leaves: dict[int | str, dict[str, Any]] = {202: {"model": NodeLeaves}}
        add("/api/nodes/{id}", self.remove, "DELETE", responses=leaves)
        add("/api/nodes/{id}/approve", self.approve, "POST")
        add("/api/nodes/{id}/reject", self.reject, "POST")
        add("/api/nodes/{id}/cordon", self.cordon, "POST")
        add("/api/nodes/{id}/uncordon", self.uncordon, "POST")
        add("/api/nodes/{id}/drain", self.drain, "POST")
        add("/api/nodes/{id}/resume", self.resume, "POST")

    async def list(
        self, after: Cursor = None, limit: Limit = 100, state: Word = None, name: Word = None, label: Label = None
    ) -> Answer[NodePage]:
        """A page of nodes, by id; removed ones only with `state=removed`."""
        return await page(self._lists, lambda lists: lists.nodes(after, limit, state, name, label or ()), limit)

    async def get(self, id: str) -> Answer[NodeDetail]:
        """One node by id or name, with what runs on it and what that claims."""
        node = named_node(self._directory, id)
        return Answer(node_detail(node, self._directory.fleet.assigned(node.id), self._heartbeats.of(node.id)))

    async def remove(
        self,
        request: Request,
        id: str,
        force: Annotated[bool, Query(description="At once: replicas that run there are lost and replaced")] = False,
        deadline_s: Annotated[DrainSeconds, Query(description="Of the drain, in seconds")] = DRAIN_S,
        reason: Annotated[str, Query(max_length=MAX_REASON)] = "",
    ) -> Answer[NodeLeaves]:
        """Take a node out for good: it is cut off, its name is free, its key can't come back.

        While something runs there it is drained first: 202, and it is removed with its last run. A resume in between
        keeps it.
        """
        node = named_node(self._directory, id)
        fact = RemovalRequested(node=node.id, why=reason, force=force, deadline_s=deadline_s)
        view = await self._asking.ask(request, fact)
        return done(view, 202 if arisen(view).get("state") == "draining" else 200)

    async def approve(self, request: Request, id: str) -> Answer[NodeChanged]:
        """Let a node that asked to join work here, also one that was rejected."""
        return await self._changed(request, ApprovalRequested(node=named_node(self._directory, id).id))

    async def reject(self, request: Request, id: str, body: RejectBody) -> Answer[NodeChanged]:
        """Turn a node away that waits for approval; it is told the reason."""
        node = named_node(self._directory, id)
        return await self._changed(request, RejectionRequested(node=node.id, why=body.reason))

    async def cordon(self, request: Request, id: str, body: ReasonBody | None = None) -> Answer[NodeChanged]:
        """Place nothing new on a node; what runs there runs on."""
        node = named_node(self._directory, id)
        return await self._changed(request, CordonRequested(node=node.id, why=body.reason if body else ""))

    async def uncordon(self, request: Request, id: str, body: ReasonBody | None = None) -> Answer[NodeChanged]:
        """Lift a cordon."""
        node = named_node(self._directory, id)
        return await self._changed(request, UncordonRequested(node=node.id, why=body.reason if body else ""))

    async def drain(self, request: Request, id: str, body: DrainBody | None = None) -> Answer[NodeChanged]:
        """Empty a node: what runs there is replaced, finished and retired; until a resume nothing is placed there.

        Answers when the drain has begun; the node's `drain` tells how it goes on, its state when it is done.
        """
        node = named_node(self._directory, id)
        return await self._changed(request, DrainRequested(node=node.id, deadline_s=(body or DrainBody()).deadline_s))

    async def resume(self, request: Request, id: str) -> Answer[NodeChanged]:
        """Lift a drain, an admin's or the worker's own."""
        return await self._changed(request, ResumeRequested(node=named_node(self._directory, id).id))

    async def _changed(self, request: Request, fact: ChangeRequest) -> Answer[NodeChanged]:
        return done(await self._asking.ask(request, fact))
