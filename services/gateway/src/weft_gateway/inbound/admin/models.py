"""`/api/models`."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from weft_contracts.facts.request import DeleteRequested, DeployRequested, RetryRequested, TrialRequested
from weft_contracts.ids import ModelId
from weft_placement.fleet import ModelView

from weft_gateway.domain.model_state import standing
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.shapes import model_shape, replica_shape
from weft_gateway.inbound.admin.asking import Asking, done
from weft_gateway.inbound.admin.bodies import DeployBody
from weft_gateway.inbound.admin.documented import PROBLEMS
from weft_gateway.inbound.admin.listing import Cursor, Limit, Source, Word, page
from weft_gateway.projections.directory import Directory


class Models:
    """Deploying, listing, looking at, retrying and deleting models."""

    def __init__(self, directory: Directory, asking: Asking, lists: Source) -> None:
        self._directory = directory
        self._asking = asking
        self._lists = lists
        self.router = APIRouter(tags=["models"], responses=PROBLEMS)
        self.router.add_api_route("/api/models", self.list, methods=["GET"])
        self.router.add_api_route("/api/models", self.deploy, methods=["POST"], status_code=201)
        self.router.add_api_route("/api/models/{ref:path}/retry", self.retry, methods=["POST"])
        self.router.add_api_route("/api/models/{ref:path}", self.get, methods=["GET"])
        self.router.add_api_route("/api/models/{ref:path}", self.delete, methods=["DELETE"])

    async def list(self, after: Cursor = None, limit: Limit = 100, state: Word = None) -> dict[str, Any]:
        """A page of models, by id; deleted ones only with `state=deleted`."""
        return await page(self._lists, lambda lists: lists.models(after, limit, state), limit)

    async def deploy(self, request: Request, body: DeployBody, dry_run: bool = False) -> JSONResponse:
        """Deploy a model, or a new revision of the one that bears this name.

        `dry_run`: ask the nodes what they hold and change nothing; 200 with the revision that it would be. Where the
        replicas would go can then be computed from the log.
        """
        spec = body.spec.spec()
        if spec.max_replicas and spec.min_replicas > spec.max_replicas:
            raise Refused(
                400,
                f"`spec.min_replicas` is {spec.min_replicas}, above `spec.max_replicas` ({spec.max_replicas});"
                " raise the maximum, or set it to 0 for none.",
                param="spec.min_replicas",
            )
        if (spec.source.kind == "simulated") != (spec.engine == "simulated"):
            raise Refused(
                400,
                f"`spec.source` is {spec.source.kind}, `spec.engine` is {spec.engine}: the simulated engine goes"
                " with the simulated source, and only with it.",
                param="spec.engine",
            )
        if dry_run:
            return done(await self._asking.ask(request, TrialRequested(name=body.name, spec=spec)))
        view = await self._asking.ask(request, DeployRequested(name=body.name, spec=spec))
        answer = done(view, 201)
        answer.headers["location"] = f"/api/models/{body.name}"
        return answer

    async def get(self, ref: str) -> dict[str, Any]:
        """One model by id or name, with its replicas."""
        model = self._model(ref)
        fleet, replicas = self._directory.fleet, self._directory.replicas(model)
        created = self._directory.created.get(model.id, 0.0)
        return model_shape(model, standing(model, replicas), created) | {
            "replicas": [replica_shape(replica, model.name, fleet.nodes) for replica in replicas]
        }

    async def delete(self, request: Request, ref: str) -> JSONResponse:
        """Delete a model by id or name; its replicas are retired."""
        return done(await self._asking.ask(request, DeleteRequested(model=self._model(ref).id)))

    async def retry(self, request: Request, ref: str) -> JSONResponse:
        """Lift `unservable` from a model."""
        return done(await self._asking.ask(request, RetryRequested(model=self._model(ref).id)))

    def _model(self, ref: str) -> ModelView:
        """Raises Refused, 404, which lists what exists."""
        return self._directory.fleet.models.get(ModelId(ref)) or self._directory.asked_for(ref)
