"""`/api/models`."""

from typing import Any

from fastapi import APIRouter, Request
from weft_api import Deployed, ModelChanged, ModelDetail, ModelPage, ModelRetried
from weft_contracts.facts.request import DeleteRequested, DeployRequested, RetryRequested, TrialRequested
from weft_contracts.facts.source import RemoteSource, SimulatedSource, UploadSource
from weft_contracts.ids import ModelId
from weft_fleet import ModelView

from weft_gateway.domain.model_state import standing
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.shapes import model_shape, replica_shape
from weft_gateway.domain.value_shapes import files_shape
from weft_gateway.inbound.admin.asking import Asking, check_format, done
from weft_gateway.inbound.admin.bodies import DeployBody
from weft_gateway.inbound.admin.listing import Cursor, Limit, Source, Word, page
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.json_route import JSONRoute
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.projections.directory import Directory

FROM_ELSEWHERE_S = 40.0
"""For the outcome where workers look at a hub, a web server or a bucket: the reconciler gives them 30 s."""


class Models:
    """Deploying, listing, looking at, retrying and deleting models."""

    def __init__(self, directory: Directory, asking: Asking, lists: Source) -> None:
        self._directory = directory
        self._asking = asking
        self._lists = lists
        self.router = APIRouter(tags=["models"], responses=PROBLEMS, route_class=JSONRoute)
        add = answering(self.router)
        add("/api/models", self.list, "GET")
        tried: dict[int | str, dict[str, Any]] = {200: {"model": Deployed, "description": "With `dry_run`"}}
        add("/api/models", self.deploy, "POST", status_code=201, responses=tried)
        add("/api/models/{ref:path}/retry", self.retry, "POST")
        add("/api/models/{ref:path}", self.get, "GET")
        add("/api/models/{ref:path}", self.delete, "DELETE")

    async def list(self, after: Cursor = None, limit: Limit = 100, state: Word = None) -> Answer[ModelPage]:
        """A page of models, by id; deleted ones only with `state=deleted`."""
        return await page(self._lists, lambda lists: lists.models(after, limit, state), limit)

    async def deploy(self, request: Request, body: DeployBody, dry_run: bool = False) -> Answer[Deployed]:
        """Deploy a model, or a new revision of the one that bears this name.

        `dry_run`: ask the nodes what they hold and change nothing; 200 with the revision that it would be. Where the
        replicas would go can then be computed from the log. Of a source that workers fetch, one of them looks at it:
        the answer tells its files, their bytes, their licence, whether it is gated, and as which commit it is pinned.
        """
        spec = body.spec.spec()
        if spec.max_replicas and spec.min_replicas > spec.max_replicas:
            raise Refused(
                400,
                f"`spec.min_replicas` is {spec.min_replicas}, above `spec.max_replicas` ({spec.max_replicas});"
                " raise the maximum, or set it to 0 for none.",
                param="spec.min_replicas",
            )
        engines = self._directory.fleet.engines
        if spec.engine not in engines:
            raise Refused(
                400,
                f"`spec.engine` is {spec.engine!r}; it must be one of {', '.join(sorted(engines))}.",
                param="spec.engine",
            )
        if isinstance(spec.source, SimulatedSource) == bool(engines[spec.engine].formats):
            raise Refused(
                400,
                f"`spec.source` is {spec.source.kind}, `spec.engine` is {spec.engine}: engines that take no files go"
                " with the simulated source, and they alone.",
                param="spec.engine",
            )
        if not isinstance(spec.source, UploadSource) and (spec.files or spec.weights.format != "none"):
            raise Refused(
                400,
                f"`spec.files` and `spec.weights` go with a source of kind upload alone, and this is"
                f" {spec.source.kind}: of others workers find them.",
                param="spec.files",
            )
        name = body.name
        fact = TrialRequested(name=name, spec=spec) if dry_run else DeployRequested(name=name, spec=spec)
        check_format(fact, self._directory.fleet.formats)
        at_least = FROM_ELSEWHERE_S if isinstance(spec.source, RemoteSource) else 0.0
        view = await self._asking.ask(request, fact, at_least=at_least)
        if dry_run:
            return done(view)
        answer: Answer[Deployed] = done(view, 201)
        answer.headers["location"] = f"/api/models/{body.name}"
        return answer

    async def get(self, ref: str) -> Answer[ModelDetail]:
        """One model by id or name, with its replicas and the files that workers fetch for it."""
        model = self._model(ref)
        fleet, replicas = self._directory.fleet, self._directory.replicas(model)
        created = self._directory.created.get(model.id, 0.0)
        shown = [replica_shape(replica, model.name, fleet.nodes) for replica in replicas]
        shape = model_shape(model, standing(model, replicas), created)
        return Answer({**shape, "replicas": shown, "files": files_shape(model.spec.files)})

    async def delete(self, request: Request, ref: str) -> Answer[ModelChanged]:
        """Delete a model by id or name; its replicas are retired."""
        return done(await self._asking.ask(request, DeleteRequested(model=self._model(ref).id)))

    async def retry(self, request: Request, ref: str) -> Answer[ModelRetried]:
        """Lift `unservable` from a model."""
        return done(await self._asking.ask(request, RetryRequested(model=self._model(ref).id)))

    def _model(self, ref: str) -> ModelView:
        """Raises Refused, 404, which lists what exists."""
        return self._directory.fleet.models.get(ModelId(ref)) or self._directory.model_for(ref)
