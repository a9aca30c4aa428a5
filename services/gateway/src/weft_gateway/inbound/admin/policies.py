"""`/api/policies`: by which models are placed: listed, set, chosen, withdrawn."""

from typing import Annotated

import weft_api as api
from fastapi import APIRouter, Path, Request
from pydantic import BaseModel
from weft_api import PolicyChanged, PolicyPage
from weft_contracts.facts.request import PolicyChoiceRequested, PolicyRequested, PolicyWithdrawalRequested
from weft_contracts.policies import NAME, Apart, PlacementPolicy, PolicyWeights, Slots

from weft_gateway.domain.policy_shapes import policy_shapes
from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.admin.asking import Asking, done
from weft_gateway.inbound.admin.listing import Cursor, Limit
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.json_route import JSONRoute
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.projections.directory import Directory

NewName = Annotated[str, Path(pattern=NAME, description="What models and people name it by")]


class PolicyWeightsBody(PolicyWeights, frozen=True, extra="forbid"):
    """How much each scorer counts beside the others, 0 to 1000; 0: not at all. One of them is above 0."""


_NIGHT = {"apart": "nodes", "slots": 8, "weights": {"binpack": 1, "files": 0.5}}


class PolicyBody(BaseModel, frozen=True, extra="forbid", json_schema_extra={"examples": [_NIGHT]}):
    """How nodes are weighed against one another; see contracts' PlacementPolicy."""

    apart: Apart = "zones"
    slots: Slots = 64
    weights: PolicyWeightsBody


class Policies:
    """Listing from memory, since they are few; and changing."""

    def __init__(self, directory: Directory, asking: Asking) -> None:
        self._directory = directory
        self._asking = asking
        self.router = APIRouter(tags=["placement"], responses=PROBLEMS, route_class=JSONRoute)
        add = answering(self.router)
        add("/api/policies", self.list, "GET")
        add("/api/policies/{name}", self.get, "GET")
        add("/api/policies/{name}", self.set, "PUT")
        add("/api/policies/{name}", self.withdraw, "DELETE")
        add("/api/policies/{name}/default", self.choose, "POST")

    async def list(self, after: Cursor = None, limit: Limit = 100) -> Answer[PolicyPage]:
        """A page of placement policies, by name: those that Weft comes with, and those that admins told."""
        fitting = [each for each in policy_shapes(self._directory.fleet) if after is None or each["name"] > after]
        items = fitting[:limit]
        return Answer({"items": items, "next": items[-1]["name"] if len(fitting) > limit else None})

    async def get(self, name: str) -> Answer[api.Policy]:
        """One policy."""
        return Answer(self._policy(name))

    async def set(self, request: Request, name: NewName, body: PolicyBody) -> Answer[PolicyChanged]:
        """Let models be placed by this policy; another one of that name is replaced. What runs stays where it is.

        409 for a name of those that Weft comes with, and for one more than 32.
        """
        policy = PlacementPolicy.model_validate({"name": name, **body.model_dump()})
        return done(await self._asking.ask(request, PolicyRequested(policy=policy)))

    async def withdraw(self, request: Request, name: str) -> Answer[PolicyChanged]:
        """Forget a policy; 409 while a model names it or the mesh goes by it, and for those that Weft comes with."""
        fact = PolicyWithdrawalRequested(name=self._policy(name)["name"])
        return done(await self._asking.ask(request, fact))

    async def choose(self, request: Request, name: str) -> Answer[PolicyChanged]:
        """Let models that name no policy be placed by this one from here on; what runs stays where it is."""
        fact = PolicyChoiceRequested(name=self._policy(name)["name"])
        return done(await self._asking.ask(request, fact))

    def _policy(self, name: str) -> api.Policy:
        """Raises Refused, 404, which lists what there is."""
        shapes = policy_shapes(self._directory.fleet)
        for each in shapes:
            if each["name"] == name:
                return each
        there = ", ".join(each["name"] for each in shapes)
        raise Refused(404, f"Policy {name[:64]!r} does not exist; there is: {there}.", code="policy_not_found")
