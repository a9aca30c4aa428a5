"""`/api/node/models`, `…/drain`, `…/resume`, `…/deregister`: what a node's own machine asks and says. Signed by its
key."""

import time
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.request import DrainRequested, RemovalRequested, ResumeRequested
from weft_contracts.ids import NodeId

from weft_gateway.inbound.admin.asking import Asking, done
from weft_gateway.inbound.admin.bodies import SignedBody, SignedDrainBody
from weft_gateway.inbound.admin.documented import PROBLEMS, NodeChanged
from weft_gateway.inbound.admin.failures import Failures
from weft_gateway.inbound.admin.node_models import models_on
from weft_gateway.inbound.admin.signed import signing_node
from weft_gateway.projections.directory import Directory


class Leaving:
    """The signature makes the request's id: sent again by whoever saw it, it changes nothing again."""

    def __init__(
        self, directory: Directory, asking: Asking, failures: Failures, now: Callable[[], float] = time.time
    ) -> None:
        self._directory = directory
        self._asking = asking
        self._failures = failures
        self._now = now
        self.router = APIRouter(tags=["joining"], responses=PROBLEMS)
        add = self.router.add_api_route
        add("/api/node/models", self.models, methods=["POST"])
        add("/api/node/drain", self.drain, methods=["POST"], response_model=NodeChanged)
        add("/api/node/resume", self.resume, methods=["POST"], response_model=NodeChanged)
        add("/api/node/deregister", self.deregister, methods=["POST"], response_model=NodeChanged)

    async def models(self, request: Request, body: SignedBody) -> dict[str, Any]:
        """The node's own models and replicas, as the mesh has them."""
        return {"items": models_on(self._directory, self._signed(request, body, "models"))}

    async def drain(self, request: Request, body: SignedDrainBody) -> JSONResponse:
        """The node stops: what runs there is replaced, finished and retired. Ends when it joins or resumes."""
        node = self._signed(request, body, "drain")
        return await self._changed(request, body, DrainRequested(node=node, why="worker", deadline_s=body.deadline_s))

    async def resume(self, request: Request, body: SignedBody) -> JSONResponse:
        """The node is back: its own drain is over. An admin's stays, with 409."""
        node = self._signed(request, body, "resume")
        return await self._changed(request, body, ResumeRequested(node=node, why="worker"))

    async def deregister(self, request: Request, body: SignedDrainBody) -> JSONResponse:
        """The node leaves for good: it is drained, then removed. Its key can't come back."""
        node = self._signed(request, body, "deregister")
        fact = RemovalRequested(node=node, why="it deregistered itself", deadline_s=body.deadline_s)
        return await self._changed(request, body, fact)

    def _signed(self, request: Request, body: SignedBody, what: str) -> NodeId:
        node = signing_node(self._directory, body, what, lambda: self._failures.count(request), self._now())
        return node.id

    async def _changed(self, request: Request, body: SignedBody, fact: Fact) -> JSONResponse:
        return done(await self._asking.ask(request, fact, key=f"{body.nonce} {body.signature}", actor=body.node))
