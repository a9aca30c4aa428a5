"""`/api/aliases`: names that stand for several models: set, listed, removed."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from weft_api import Alias, AliasChanged, AliasPage
from weft_contracts.aliases import AliasTarget
from weft_contracts.facts.request import AliasRemovalRequested, AliasRequested
from weft_contracts.ids import ModelId
from weft_contracts.names import LONGEST_MODEL_NAME, NAME
from weft_fleet import AliasView, ModelView

from weft_gateway.domain.alias_shapes import alias_shape
from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.admin.asking import Asking, done
from weft_gateway.inbound.admin.bodies import AliasBody
from weft_gateway.inbound.admin.listing import Limit, NameCursor
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.json_route import JSONRoute
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.projections.directory import Directory

NewName = Annotated[str, Path(pattern=f"^{NAME}$", max_length=LONGEST_MODEL_NAME, description="What to ask for")]


class Aliases:
    """Setting, listing and removing. The list is from memory: aliases are few."""

    def __init__(self, directory: Directory, asking: Asking) -> None:
        self._directory = directory
        self._asking = asking
        self.router = APIRouter(tags=["aliases"], responses=PROBLEMS, route_class=JSONRoute)
        add = answering(self.router)
        add("/api/aliases", self.list, "GET")
        add("/api/aliases/{name:path}", self.get, "GET")
        add("/api/aliases/{name:path}", self.set, "PUT")
        add("/api/aliases/{name:path}", self.remove, "DELETE")

    async def list(self, after: NameCursor = None, limit: Limit = 100) -> Answer[AliasPage]:
        """A page of aliases, by name, each with its models and how they stand."""
        aliases = self._directory.fleet.aliases
        names = [name for name in sorted(aliases) if after is None or name > after]
        items = [alias_shape(aliases[name], self._directory.stands) for name in names[:limit]]
        return Answer({"items": items, "next": items[-1]["name"] if len(names) > limit else None})

    async def get(self, name: str) -> Answer[Alias]:
        """One alias."""
        return Answer(alias_shape(self._alias(name), self._directory.stands))

    async def set(self, request: Request, name: NewName, body: AliasBody) -> Answer[AliasChanged]:
        """Let a name stand for several models; an alias of that name is replaced whole.

        Each request goes to one of them: by a draw among those that can take it (`weights`), or to the first that can
        (`order`). A name is a model's or an alias's: 409 where a model bears it. A model can't be deleted while an
        alias stands for it.
        """
        targets = tuple(
            AliasTarget(model=self._model(each.model, place).id, weight=each.weight)
            for place, each in enumerate(body.targets)
        )
        return done(await self._asking.ask(request, AliasRequested(name=name, rule=body.rule, targets=targets)))

    async def remove(self, request: Request, name: str) -> Answer[AliasChanged]:
        """Let a name be no alias any more; its models stay."""
        return done(await self._asking.ask(request, AliasRemovalRequested(name=self._alias(name).name)))

    def _alias(self, name: str) -> AliasView:
        """Raises Refused, 404, which lists what there is."""
        aliases = self._directory.fleet.aliases
        if name not in aliases:
            there = ", ".join(sorted(aliases)[:20]) or "none"
            raise Refused(404, f"Alias {name[:128]!r} does not exist; there is: {there}.", code="alias_not_found")
        return aliases[name]

    def _model(self, ref: str, place: int) -> ModelView:
        """A target by name or id. Raises Refused, 422."""
        fleet, param = self._directory.fleet, f"targets[{place}].model"
        if ref in fleet.aliases:
            what = f"`{param}` is {ref!r}, an alias itself; give the models that it stands for."
            raise Refused(422, what, param=param, code="alias_of_an_alias")
        model = fleet.model_named(ref) or fleet.models.get(ModelId(ref))
        if model is None or model.deleted:
            there = ", ".join(model.name for model in self._directory.served()[:20]) or "none"
            what = f"`{param}` is {ref[:128]!r}, and no model is called so; there is: {there}."
            raise Refused(422, what, param=param, code="model_not_found")
        return model
