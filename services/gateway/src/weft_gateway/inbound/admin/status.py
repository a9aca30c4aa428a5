"""`GET /api/status`: the whole mesh in one look, or what the first page shows of it, from memory."""

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Annotated, Literal

import msgspec
import weft_api as api
from fastapi import APIRouter, Header, Query
from fastapi.responses import Response
from weft_contracts.ids import ModelId
from weft_eventlog import Projection
from weft_runtime.health import Health

from weft_gateway.domain.progress_board import ProgressBoard
from weft_gateway.domain.request_headers import matches_entity_tag
from weft_gateway.domain.shapes import brake_shape
from weft_gateway.inbound.admin.rendered import Rendered
from weft_gateway.inbound.admin.rendered_progress import RenderedProgress
from weft_gateway.inbound.admin.rendered_wishes import RenderedWishes
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.inbound.inference.request_dispatcher import RequestDispatcher
from weft_gateway.outbound.log_space import LogSpace
from weft_gateway.projections.directory import Directory


class Status:
    """Answers whether or not NATS and Postgres are there."""

    def __init__(
        self,
        instance: str,
        directory: Directory,
        projection: Projection,
        dispatcher: RequestDispatcher,
        health: Health,
        connected: Callable[[], bool],
        tables: Callable[[], api.Tables],
        room: LogSpace,
        board: ProgressBoard,
        no_tokenizer: Callable[[], Mapping[ModelId, str]] = dict,
    ) -> None:
        """`no_tokenizer`: see `StatusHead`."""
        self._instance = instance
        self._directory = directory
        self._rendered = Rendered(directory)
        self._progress = RenderedProgress(directory, board)
        self._wishes = RenderedWishes(directory, board)
        self._no_tokenizer = no_tokenizer
        self._projection = projection
        self._dispatcher = dispatcher
        self._health = health
        self._connected = connected
        self._tables = tables
        self._room = room
        self.router = APIRouter(tags=["status"], responses=PROBLEMS)
        self.router.add_api_route("/api/status", self.get, methods=["GET"], response_model=api.Status | api.StatusPage)

    async def get(
        self,
        view: Annotated[Literal["all", "page"], Query()] = "all",
        if_none_match: Annotated[str | None, Header()] = None,
    ) -> Response:
        """Nodes, models, replicas, the log, the brake, and what is wrong. `view=page`: counts, and of nodes and of
        each model's replicas the first few, those that need an eye before the others; of what is wrong, what is no
        node's and no model's. The entity tag changes with what is said."""
        ejected = {replica: why for replica, why in self._dispatcher.pool.ejections().items() if why is not None}
        version = self._rendered.update(ejected)
        own = list(self._health.problems.values())
        if not self._connected():
            own.insert(0, "the event log is away: what runs is served, nothing can change")
        if (full := self._room.problem()) is not None:
            own.insert(0, full)
        brake = self._rendered.problems[:1] if self._directory.fleet.brake else ()
        said = (*own, *self._rendered.problems) if view == "all" else (*own, *brake)
        head = msgspec.json.encode(self._head(said, full, degraded=bool(own or self._rendered.problems)))
        progress = self._progress.whole() if view == "all" else self._progress.page()
        ahead = b',"files_ahead":' + self._wishes.whole() if view == "all" else b""
        head = head[:-1] + b',"progress":' + progress + ahead + b"}"
        said_of = f"{view} {version} {sorted(ejected.items())} ".encode()
        tag = f'"{blake2b(said_of + head, digest_size=12).hexdigest()}"'
        headers = {"etag": tag, "cache-control": "no-cache"}
        if matches_entity_tag(if_none_match, tag):
            return Response(status_code=304, headers=headers)
        body = head[:-1] + b"," + (self._rendered.whole() if view == "all" else self._rendered.page()) + b"}"
        return Response(body, media_type="application/json", headers=headers)

    def _head(self, problems: Sequence[str], full: str | None, *, degraded: bool) -> dict[str, object]:
        """What may change without a fact, but nodes' progress: the members of `StatusHead`."""
        brake = self._directory.fleet.brake
        return {
            "gateway": {"instance": self._instance, "ready": self._health.ready},
            "mesh": {
                "health": "degraded" if degraded else "ok",
                "problems": list(problems),
                "brake": brake_shape(brake) if brake else None,
            },
            "log": {
                "position": self._projection.position,
                "caught_up": self._projection.caught_up.is_set(),
                "connected": self._connected(),
                "halted": self._projection.halted,
                "full": full,
            },
            "tables": self._tables(),
            "requests": {
                "running": len(self._dispatcher.in_flight),
                "waiting": self._dispatcher.queue.total + self._dispatcher.loading.total,
            },
            "no_tokenizer": self._no_tokenizer(),
        }
