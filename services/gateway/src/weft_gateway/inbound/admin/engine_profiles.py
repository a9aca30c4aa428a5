"""`/api/engine-profiles`: what the mesh knows of engines."""

from fastapi import APIRouter, Request
from weft_api import EngineProfileChanged, EngineProfilePage, EngineProfileWithdrawn
from weft_contracts.engines.faults import fault_of_profile
from weft_contracts.facts.request import EngineProfileRequested, EngineProfileWithdrawalRequested

from weft_gateway.domain.engine_shapes import profile_shape
from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.admin.asking import Asking, check_format, done
from weft_gateway.inbound.admin.engine_bodies import EngineProfileBody
from weft_gateway.inbound.admin.listing import Cursor, Limit
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.json_route import JSONRoute
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.projections.directory import Directory


class EngineProfiles:
    """Listing, setting and withdrawing profiles. The list is from memory: engines are few."""

    def __init__(self, directory: Directory, asking: Asking) -> None:
        self._directory = directory
        self._asking = asking
        self.router = APIRouter(tags=["engines"], responses=PROBLEMS, route_class=JSONRoute)
        add = answering(self.router)
        add("/api/engine-profiles", self.list, "GET")
        add("/api/engine-profiles", self.set, "POST", status_code=201)
        add("/api/engine-profiles/{engine}", self.withdraw, "DELETE")

    async def list(self, after: Cursor = None, limit: Limit = 100) -> Answer[EngineProfilePage]:
        """A page of engines, by name, built-in ones among them."""
        profiles = sorted(self._directory.fleet.engines.items())
        fitting = [profile_shape(profile) for name, profile in profiles if after is None or name > after]
        items = fitting[:limit]
        return Answer({"items": items, "next": items[-1]["name"] if len(fitting) > limit else None})

    async def set(self, request: Request, body: EngineProfileBody) -> Answer[EngineProfileChanged]:
        """Let the mesh know an engine by this profile; another one of that name is replaced, a built-in one can't be.

        What runs keeps its claim. New replicas go to workers alone that report this profile's digest.
        """
        profile = body.profile()
        fault = fault_of_profile(profile)
        if fault is not None:
            raise Refused(422, f"The profile can't be used: {fault}.", code="bad_profile")
        fact = EngineProfileRequested(profile=profile)
        check_format(fact, self._directory.fleet.formats)
        return done(await self._asking.ask(request, fact), 201)

    async def withdraw(self, request: Request, engine: str) -> Answer[EngineProfileWithdrawn]:
        """Let the mesh forget an engine; 409 for a built-in one, and for one that a model uses."""
        if engine not in self._directory.fleet.engines:
            raise Refused(404, f"Engine {engine[:64]!r} does not exist.", code="engine_not_found")
        return done(await self._asking.ask(request, EngineProfileWithdrawalRequested(engine=engine)))
