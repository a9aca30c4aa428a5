"""`/api/scheduling`, and `/api/nodes/scheduling` for LocalAI's clients: how many replicas, and on which nodes."""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import AfterValidator, BaseModel, Field
from weft_api import Scheduling, SchedulingChanged, SchedulingPage
from weft_contracts.facts.request import SchedulingRequested
from weft_contracts.facts.rollout import MaxSurge, MaxUnavailable, ProgressSeconds, RolloutRules
from weft_contracts.facts.sizing import OwnScaling
from weft_contracts.ids import ModelId
from weft_fleet import ModelView

from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.admin.asking import Asking
from weft_gateway.inbound.admin.bodies import ModelName
from weft_gateway.inbound.admin.listing import Limit, NameCursor
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.json_route import JSONRoute
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.projections.directory import Directory

PATHS = ("/api/scheduling", "/api/nodes/scheduling")
"""Weft's own and LocalAI's."""


def _not_yet(given: Any) -> Any:
    raise ValueError("routing has none of route_policy, balance_*_threshold and min_prefix_match yet: leave it out")


NotYet = Annotated[Any, AfterValidator(_not_yet)]
Replicas = Annotated[int, Field(ge=0, le=10_000)]
_TWO = {"model_name": "tiny", "node_selector": {"zone": "a"}, "min_replicas": 2, "max_replicas": 4}


class ScalingBody(OwnScaling, frozen=True, extra="forbid"):
    """Figures by which a model is sized, in the place of the mesh's; null, or left out: the mesh's."""


class SchedulingBody(BaseModel, frozen=True, extra="forbid", json_schema_extra={"examples": [_TWO]}):
    """What is to change; what is left out, or null, stays as it is. LocalAI's names."""

    model_name: ModelName | None = None
    """Its name or id; needed where the path names none."""
    node_selector: Annotated[dict[str, str], Field(max_length=64)] | None = None
    """Labels that a node must bear, all of them anew; `!key` with an empty value: must not bear. `{}`: any node."""
    min_replicas: Replicas | None = None
    max_replicas: Replicas | None = None
    """0: no upper bound."""
    spread_all: bool | None = None
    """A replica on each node that matches; then neither of the two numbers goes with it."""
    max_surge: MaxSurge | None = None
    """Replicas that a rollout may have beyond those that should serve."""
    max_unavailable: MaxUnavailable | None = None
    """Replicas that may be missing in a rollout: where one more has no room, one goes first."""
    progress_s: ProgressSeconds | None = None
    """Seconds within which one more of a new revision must be ready, or it is taken back; 0: however long."""
    scaling: ScalingBody | None = None
    """All of its own figures anew; `{}`: the mesh's."""
    route_policy: NotYet = None
    balance_abs_threshold: NotYet = None
    balance_rel_threshold: NotYet = None
    min_prefix_match: NotYet = None


class SchedulingOfModels:
    """Each model has one, with the defaults where nobody said anything. Listed from memory."""

    def __init__(self, directory: Directory, asking: Asking) -> None:
        self._directory = directory
        self._asking = asking
        self.router = APIRouter(tags=["models"], responses=PROBLEMS, route_class=JSONRoute)
        add = answering(self.router)
        for path in PATHS:
            add(path, self.list, "GET")
            add(path, self.set, "POST")
            add(f"{path}/{{model:path}}", self.get, "GET")
            for method in ("POST", "PUT", "PATCH"):
                add(f"{path}/{{model:path}}", self.set_one, method)
            add(f"{path}/{{model:path}}", self.reset, "DELETE")

    async def list(self, after: NameCursor = None, limit: Limit = 100) -> Answer[SchedulingPage]:
        """A page of models, by name, each with how many replicas there are to be of it and where."""
        fitting = [_shape(model) for model in self._directory.served() if after is None or model.name > after]
        items = fitting[:limit]
        return Answer({"items": items, "next": items[-1]["model_name"] if len(fitting) > limit else None})

    async def get(self, model: str) -> Answer[Scheduling]:
        """Of one model, by name or id."""
        return Answer(_shape(self._model(model)))

    async def set(self, request: Request, body: SchedulingBody) -> Answer[SchedulingChanged]:
        """Change what is said, and leave the rest as it is: a new revision that differs in that alone.

        Other numbers move nothing but what they end; another selector is rolled out. 400 for a minimum above the
        maximum, and for `spread_all` beside either; 409 for either while `spread_all` stands.
        """
        if body.model_name is None:
            raise Refused(400, "`model_name` is missing: name the model, here or in the path.", param="model_name")
        return await self._changed(request, self._model(body.model_name), body)

    async def set_one(self, request: Request, model: str, body: SchedulingBody) -> Answer[SchedulingChanged]:
        """The same of the model that the path names; PUT as PATCH leaves what it doesn't say."""
        view = self._model(model)
        if body.model_name not in (None, view.name, view.id):
            what = f"`model_name` is {body.model_name!r}, and the path names {view.name!r}; leave one of them out."
            raise Refused(400, what, param="model_name")
        return await self._changed(request, view, body)

    async def reset(self, request: Request, model: str) -> Answer[SchedulingChanged]:
        """As if nobody had said anything: one replica, on any node, rolled out and sized by the defaults."""
        numbers: dict[str, Any] = {"node_selector": {}, "min_replicas": 1, "max_replicas": 1, "spread_all": False}
        body = SchedulingBody(**numbers, scaling=ScalingBody(), **RolloutRules().model_dump())
        return await self._changed(request, self._model(model), body)

    async def _changed(self, request: Request, model: ModelView, body: SchedulingBody) -> Answer[SchedulingChanged]:
        if body.spread_all and (body.min_replicas is not None or body.max_replicas is not None):
            what = "`spread_all` goes with neither `min_replicas` nor `max_replicas`; leave both out."
            raise Refused(400, what, param="spread_all")
        fact = SchedulingRequested(
            model=model.id,
            selector=body.node_selector,
            min_replicas=body.min_replicas,
            max_replicas=body.max_replicas,
            spread_all=body.spread_all,
            max_surge=body.max_surge,
            max_unavailable=body.max_unavailable,
            progress_s=body.progress_s,
            scaling=None if body.scaling is None else OwnScaling(**body.scaling.said),
        )
        view = await self._asking.ask(request, fact)
        return Answer({"request": view.id, **_shape(self._directory.fleet.models[model.id])})

    def _model(self, ref: str) -> ModelView:
        """Raises Refused, 404, which lists what exists."""
        found = self._directory.fleet.models.get(ModelId(ref))
        return found if found is not None and not found.deleted else self._directory.model_for(ref)


def _shape(model: ModelView) -> Scheduling:
    spec = model.spec
    return {
        "model_name": model.name,
        "model": model.id,
        "revision": model.revision,
        "node_selector": dict(spec.selector),
        "min_replicas": spec.min_replicas,
        "max_replicas": spec.max_replicas,
        "spread_all": spec.spread_all,
        "max_surge": model.rules.max_surge,
        "max_unavailable": model.rules.max_unavailable,
        "progress_s": model.rules.progress_s,
        "scaling": model.scaling.said,
    }
