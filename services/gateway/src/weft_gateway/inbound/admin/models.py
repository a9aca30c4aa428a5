"""`/api/models`."""

import time
from collections.abc import Callable, Iterable
from typing import Any

from fastapi import APIRouter, Request
from weft_api import Deployed, ModelChanged, ModelDetail, ModelPage, ModelRetried, ModelRolledBack
from weft_contracts.facts.request import (
    DeleteRequested,
    DeployRequested,
    RetryRequested,
    RollbackRequested,
    TrialRequested,
)
from weft_contracts.facts.source import RemoteSource, SimulatedSource, UploadSource
from weft_contracts.ids import ModelId
from weft_contracts.subjects import Aggregate
from weft_fleet import ModelView
from weft_placement.dry_run import dry_run_in_turns
from weft_placement.fleet_copy import copied
from weft_placement.set_aside import set_aside

from weft_gateway.domain.explanations import dry_run_shape
from weft_gateway.domain.model_state import standing
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.shapes import model_shape, replica_shape
from weft_gateway.domain.value_shapes import files_shape
from weft_gateway.inbound.admin.asking import Asking, arisen, check_format, done
from weft_gateway.inbound.admin.bodies import DeployBody, RollbackBody
from weft_gateway.inbound.admin.listing import Cursor, Limit, Source, Word, page
from weft_gateway.inbound.admin.remedy_search import RemedySearch
from weft_gateway.inbound.admin.turns import in_turns
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.json_route import JSONRoute
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.projections.directory import Directory

FROM_ELSEWHERE_S = 40.0
"""For the outcome where workers look at a hub, a web server or a bucket: the reconciler gives them 30 s."""


class Models:
    """Deploying, listing, looking at, retrying, rolling back and deleting models."""

    def __init__(
        self,
        directory: Directory,
        asking: Asking,
        lists: Source,
        remedies: RemedySearch,
        suspects: Callable[[], Iterable[Aggregate]],
    ) -> None:
        """`suspects`: aggregates with an event that can't be read, now."""
        self._directory = directory
        self._suspects = suspects
        self._remedies = remedies
        self._asking = asking
        self._lists = lists
        self.router = APIRouter(tags=["models"], responses=PROBLEMS, route_class=JSONRoute)
        add = answering(self.router)
        add("/api/models", self.list, "GET")
        tried: dict[int | str, dict[str, Any]] = {200: {"model": Deployed, "description": "With `dry_run`"}}
        add("/api/models", self.deploy, "POST", status_code=201, responses=tried)
        add("/api/models/{ref:path}/retry", self.retry, "POST")
        add("/api/models/{ref:path}/rollback", self.rollback, "POST")
        add("/api/models/{ref:path}", self.get, "GET")
        add("/api/models/{ref:path}", self.delete, "DELETE")

    async def list(self, after: Cursor = None, limit: Limit = 100, state: Word = None) -> Answer[ModelPage]:
        """A page of models, by id; deleted ones only with `state=deleted`."""
        return await page(self._lists, lambda lists: lists.models(after, limit, state), limit)

    async def deploy(self, request: Request, body: DeployBody, dry_run: bool = False) -> Answer[Deployed]:
        """Deploy a model, or a new revision of the one that bears this name.

        `dry_run`: ask the nodes what they hold and change nothing; 200 with the revision that it would be, and where
        each of its replicas would go. Of a source that workers fetch, one of them looks at it:
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
            aside, pinned = set_aside(self._suspects()), arisen(view).get("source")
            fleet = copied(self._directory.fleet)
            turns = dry_run_in_turns(fleet, name, spec, pinned=pinned, set_aside=aside, now=time.time())
            plan = await in_turns(turns)
            shape = dry_run_shape(plan)
            if plan.question is not None:
                last = shape["replicas"][-1]
                shape["replicas"][-1] = {**last, **await self._remedies.of(plan.question)}
            return done(view, plan=shape)
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
        return Answer(
            {
                **shape,
                "replicas": shown,
                "files": files_shape(model.spec.files),
            }
        )

    async def delete(self, request: Request, ref: str) -> Answer[ModelChanged]:
        """Delete a model by id or name; its replicas are retired."""
        return done(await self._asking.ask(request, DeleteRequested(model=self._model(ref).id)))

    async def retry(self, request: Request, ref: str) -> Answer[ModelRetried]:
        """Lift `unservable` from a model."""
        return done(await self._asking.ask(request, RetryRequested(model=self._model(ref).id)))

    async def rollback(self, request: Request, ref: str, body: RollbackBody | None = None) -> Answer[ModelRolledBack]:
        """Serve a revision of before again, as the next one; without `to` the last of which a replica was ready.

        It is rolled out as any other, with as many replicas as there are to be now. 404 for a revision that there
        isn't, 409 where none before ever served, 422 for one whose secret, policy or engine is no more.
        """
        to = None if body is None else body.to
        return done(await self._asking.ask(request, RollbackRequested(model=self._model(ref).id, to=to)))

    def _model(self, ref: str) -> ModelView:
        """Raises Refused, 404, which lists what exists."""
        return self._directory.fleet.models.get(ModelId(ref)) or self._directory.model_for(ref)
