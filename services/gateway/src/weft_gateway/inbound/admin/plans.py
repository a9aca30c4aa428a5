"""`POST /api/plans`: where models would go on the mesh as it is. Nothing is decided by it."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field
from weft_api import Plan
from weft_contracts.facts.values import Weights
from weft_contracts.policies import PolicyName
from weft_contracts.subjects import Aggregate
from weft_placement.plan import PlanFault, live_outcomes, plan_of_outcomes
from weft_placement.set_aside import set_aside

from weft_gateway.domain.plan_shapes import plan_shape
from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.json_route import JSONRoute
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.projections.directory import Directory

_MODELS: dict[str, Any] = {"models": [{"name": "m", "claim": {"vram": "10GiB"}}]}


class WeightsBody(Weights, frozen=True, extra="forbid"):
    """What a model file's header says, as an inspection tells it."""


class PlanBody(BaseModel, frozen=True, extra="forbid", json_schema_extra={"examples": [{"document": _MODELS}]}):
    """What is to be planned."""

    document: dict[str, Any] | None = None
    """What a plan's file says of `models` and `policies`; null: the mesh's own replicas that wait."""
    weights: Annotated[dict[str, WeightsBody], Field(max_length=1000)] = {}
    """What the headers of models' files say, by the `path` that the document names."""
    policy: PolicyName | None = None
    """One for all, in place of their own."""


class Plans:
    """Computed on a copy of the fleet, replica by replica, so that others have their turn; one at a time."""

    def __init__(self, directory: Directory, suspects: Callable[[], Iterable[Aggregate]]) -> None:
        """`suspects`: aggregates with an event that can't be read, now."""
        self._directory = directory
        self._suspects = suspects
        self._planning = asyncio.Lock()
        self.router = APIRouter(tags=["placement"], responses=PROBLEMS, route_class=JSONRoute)
        answering(self.router)("/api/plans", self.plan, "POST")

    async def plan(self, body: PlanBody) -> Answer[Plan]:
        """Where each replica would go, beside what runs and those before it, or why nowhere; 256 replicas at most. 400
        for a document that says something wrong, with the field's path; 503 while another plan is computed."""
        if self._planning.locked():
            raise Refused(503, "Another plan is being computed; ask again.", headers={"retry-after": "1"})

        def weights_of(path: str) -> Weights:
            if path not in body.weights:
                raise ValueError(f"{path}: its header is not among `weights`")
            return Weights.model_validate(body.weights[path].model_dump())

        fleet, found = self._directory.fleet, list[Any]()
        position, aside = fleet.position, set_aside(self._suspects())
        async with self._planning:
            try:
                for outcome in live_outcomes(fleet, body.document, weights_of, body.policy, aside, now=time.time()):
                    found.append(outcome)
                    await asyncio.sleep(0)
            except PlanFault as fault:
                raise Refused(400, str(fault), param=fault.where, code="plan_fault") from None
        return Answer(plan_shape(plan_of_outcomes(found), position))
