"""`/api/backends`, `/api/backend-recipes`: what nodes have installed, and how engines are installed."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from weft_api import (
    BackendRecipeChanged,
    BackendRecipePage,
    BackendRecipeWithdrawn,
    BackendUpgraded,
    NodeBackendRemoved,
    NodeBackendsPage,
    NodeBackendWanted,
)
from weft_contracts.backends import fault_of_recipe
from weft_contracts.engines.faults import fault_of_profile
from weft_contracts.facts.request import (
    BackendInstallRequested,
    BackendRemovalRequested,
    BackendRequested,
    BackendUpgradeRequested,
    BackendWithdrawalRequested,
)

from weft_gateway.domain.backend_shapes import node_backends_shape, recipe_shape
from weft_gateway.domain.progress_board import ProgressBoard
from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.admin.asking import Asking, done
from weft_gateway.inbound.admin.backend_bodies import BackendBody
from weft_gateway.inbound.admin.listing import Cursor, Limit
from weft_gateway.inbound.admin.naming import named_node
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.json_route import JSONRoute
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.projections.directory import Directory


class Backends:
    """What is installed, and the recipes. Both from memory."""

    def __init__(self, directory: Directory, asking: Asking, board: ProgressBoard) -> None:
        self._directory = directory
        self._board = board
        self._asking = asking
        self.router = APIRouter(tags=["engines"], responses=PROBLEMS, route_class=JSONRoute)
        add = answering(self.router)
        add("/api/backends", self.list, "GET")
        add("/api/backends/{engine}/upgrade", self.upgrade, "POST")
        add("/api/nodes/{id}/backends/{engine}", self.install, "POST")
        add("/api/nodes/{id}/backends/{engine}", self.uninstall, "DELETE")
        add("/api/backend-recipes", self.recipes, "GET")
        add("/api/backend-recipes", self.set, "POST", status_code=201)
        add("/api/backend-recipes/{engine}", self.withdraw, "DELETE")

    async def list(self, after: Cursor = None, limit: Limit = 100) -> Answer[NodeBackendsPage]:
        """A page of nodes, by id: what each has installed, what it installs, and how far that is."""
        fleet = self._directory.fleet
        nodes = [node for id, node in sorted(fleet.nodes.items()) if not node.removed and (after is None or id > after)]
        items = [node_backends_shape(fleet, self._board, node) for node in nodes[:limit]]
        return Answer({"items": items, "next": items[-1]["node"] if len(nodes) > limit else None})

    async def upgrade(self, request: Request, engine: str) -> Answer[BackendUpgraded]:
        """Move replicas that run in what an older recipe made to what today's makes.

        Each is replaced by one that is installed and started beside it, and goes once that serves.
        """
        return done(await self._asking.ask(request, BackendUpgradeRequested(engine=self._known(engine))))

    async def install(self, request: Request, id: str, engine: str) -> Answer[NodeBackendWanted]:
        """Have a node install an engine before a replica needs it; 409 with the reason where it can't.

        Answers once it is decided: `GET /api/backends` tells when it is there, or why it could not be installed.
        """
        node = named_node(self._directory, id)
        fact = BackendInstallRequested(node=node.id, engine=self._known(engine))
        return done(await self._asking.ask(request, fact))

    async def uninstall(
        self,
        request: Request,
        id: str,
        engine: str,
        version: Annotated[str, Query(max_length=64, description="Of this version alone")] = "",
    ) -> Answer[NodeBackendRemoved]:
        """Have a node remove what it installed of an engine and keep none ahead of need; 409 while it is used."""
        node = named_node(self._directory, id)
        fact = BackendRemovalRequested(node=node.id, engine=self._known(engine), version=version)
        return done(await self._asking.ask(request, fact))

    def _known(self, engine: str) -> str:
        if engine not in self._directory.fleet.engines:
            raise Refused(404, f"The mesh knows no engine {engine[:64]!r}.", code="engine_not_found")
        return engine

    async def recipes(self, after: Cursor = None, limit: Limit = 100) -> Answer[BackendRecipePage]:
        """A page of recipes, by engine: Weft's own catalogue, and over it what admins told."""
        fleet = self._directory.fleet
        fitting = [
            recipe_shape(recipe, builtin=engine not in fleet.told_recipes)
            for engine, recipe in sorted(fleet.recipes.items())
            if after is None or engine > after
        ]
        items = fitting[:limit]
        return Answer({"items": items, "next": items[-1]["engine"] if len(fitting) > limit else None})

    async def set(self, request: Request, body: BackendBody) -> Answer[BackendRecipeChanged]:
        """Let nodes install an engine by this recipe, a built-in engine too; what is installed stays as it is.

        A recipe names packages and versions alone: where they come from is each worker's setting.
        """
        recipe, profile = body.told(), body.profile.profile() if body.profile is not None else None
        fault = fault_of_profile(profile) if profile is not None else None
        fault = fault or fault_of_recipe(recipe, profile or self._directory.fleet.engines.get(recipe.engine))
        if fault is not None:
            raise Refused(422, f"The recipe can't be used: {fault}.", code="bad_recipe")
        return done(await self._asking.ask(request, BackendRequested(recipe=recipe, profile=profile)), 201)

    async def withdraw(self, request: Request, engine: str) -> Answer[BackendRecipeWithdrawn]:
        """Let nodes install an engine as Weft's own catalogue says, or not at all; 404 where nobody told otherwise."""
        if engine not in self._directory.fleet.told_recipes:
            raise Refused(404, f"Of engine {engine[:64]!r} no recipe was told.", code="recipe_not_found")
        return done(await self._asking.ask(request, BackendWithdrawalRequested(engine=engine)))
