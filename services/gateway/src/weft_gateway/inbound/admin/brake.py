"""`/api/brake`: too many nodes are silent at once and nothing is replaced, until an operator says otherwise."""

from fastapi import APIRouter, Request
from weft_api import Changed
from weft_contracts.facts.request import BrakeLiftRequested

from weft_gateway.inbound.admin.asking import Asking, done
from weft_gateway.inbound.admin.bodies import ReasonBody
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.json_route import JSONRoute
from weft_gateway.inbound.http.openapi_document import PROBLEMS


class Brake:
    """Lifting the brake; whether it is set stands in `/api/status`."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self.router = APIRouter(tags=["brake"], responses=PROBLEMS, route_class=JSONRoute)
        answering(self.router)("/api/brake/lift", self.lift, "POST")

    async def lift(self, request: Request, body: ReasonBody | None = None) -> Answer[Changed]:
        """Say that who is silent is really gone: what ran there is replaced. 409 where the brake is not set."""
        return done(await self._asking.ask(request, BrakeLiftRequested(why=body.reason if body else "")))
