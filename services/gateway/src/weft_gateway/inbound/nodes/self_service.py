"""`/api/node/models`, `…/drain`, `…/resume`, `…/deregister`: what a node's own machine asks and changes of itself,
signed by the node's key."""

import time
from collections.abc import Callable
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from weft_api import ModelsOnNode, NodeChanged, NodeLeaves
from weft_contracts.facts.request import ChangeRequest, DrainRequested, RemovalRequested, ResumeRequested
from weft_contracts.ids import NodeId

from weft_gateway.domain.node_bodies import SignedBody, SignedDrainBody
from weft_gateway.inbound.admin.asking import Asking, done
from weft_gateway.inbound.admin.node_models import models_on
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.openapi_document import PROBLEMS, node_route_document
from weft_gateway.inbound.nodes.signatures import signing_node
from weft_gateway.inbound.nodes.untrusted_body import count_failure, read_body
from weft_gateway.projections.directory import Directory

_BODY = msgspec.json.Decoder(SignedBody)
_DRAIN = msgspec.json.Decoder(SignedDrainBody)


class SelfService:
    """Nodes' routes about themselves. The signature makes the request's id, so that one which somebody overheard and
    sends again changes nothing."""

    def __init__(self, directory: Directory, asking: Asking, now: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._asking = asking
        self._now = now
        self.router = APIRouter(tags=["joining"], responses=PROBLEMS)
        add = answering(self.router)
        signed, timed = node_route_document(SignedBody), node_route_document(SignedDrainBody)
        add("/api/node/models", self.models, "POST", openapi_extra=signed)
        add("/api/node/drain", self.drain, "POST", openapi_extra=timed)
        add("/api/node/resume", self.resume, "POST", openapi_extra=signed)
        add("/api/node/deregister", self.deregister, "POST", openapi_extra=timed)

    async def models(self, request: Request) -> Answer[ModelsOnNode]:
        """The node's own models and replicas, as the mesh has them."""
        body = await read_body(request, _BODY)
        return Answer({"items": models_on(self._directory, self._signed(request, body, "models"))})

    async def drain(self, request: Request) -> Answer[NodeChanged]:
        """The node stops: what runs there is replaced, finished and retired. Ends when it joins or resumes."""
        body = await read_body(request, _DRAIN)
        node = self._signed(request, body, "drain")
        return await self._changed(request, body, DrainRequested(node=node, why="worker", deadline_s=body.deadline_s))

    async def resume(self, request: Request) -> Answer[NodeChanged]:
        """The node is back: its own drain is over. An admin's stays, with 409."""
        body = await read_body(request, _BODY)
        node = self._signed(request, body, "resume")
        return await self._changed(request, body, ResumeRequested(node=node, why="worker"))

    async def deregister(self, request: Request) -> Answer[NodeLeaves]:
        """The node leaves for good: it is drained, then removed. Its key can't come back."""
        body = await read_body(request, _DRAIN)
        node = self._signed(request, body, "deregister")
        fact = RemovalRequested(node=node, why="it deregistered itself", deadline_s=body.deadline_s)
        return await self._changed(request, body, fact)

    def _signed(self, request: Request, body: SignedBody, what: str) -> NodeId:
        node = signing_node(self._directory, body, what, lambda: count_failure(request), self._now())
        return node.id

    async def _changed(self, request: Request, body: SignedBody, fact: ChangeRequest) -> Answer[Any]:
        return done(await self._asking.ask(request, fact, key=f"{body.nonce} {body.signature}", actor=body.node))
