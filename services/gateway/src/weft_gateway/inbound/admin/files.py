"""`/api/files`: where models' files lie that nodes fetch, fetching them ahead of need, keeping and removing them."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from weft_api import FilesFetched, FilesKept, FilesRemoved, ModelFilesPage
from weft_contracts.facts.request import (
    FilesFetchRequested,
    FilesPinRequested,
    FilesRemovalRequested,
    FilesUnpinRequested,
)
from weft_contracts.facts.request.registry import MOST_FILE_NODES
from weft_contracts.ids import ModelId, NodeId
from weft_contracts.names import LONGEST_MODEL_NAME
from weft_fleet import ModelView
from weft_fleet.files_used import FilesNamed

from weft_gateway.domain.file_shapes import Users, files_shape, files_users, known_files
from weft_gateway.domain.progress_board import ProgressBoard
from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.admin.asking import Asking, done
from weft_gateway.inbound.admin.listing import Cursor, Limit
from weft_gateway.inbound.admin.naming import named_node
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.json_route import JSONRoute
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.projections.directory import Directory

_A_TURN = 64
"""Models that are looked at before others have their turn: the digest of a list of files takes up to a millisecond."""
NodeNames = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=128)], ...], Field(max_length=MOST_FILE_NODES)
]


class FetchBody(BaseModel, frozen=True, extra="forbid", json_schema_extra={"examples": [{"model": "tiny"}]}):
    """Whose files, and where: on `nodes`, by name or id, or on so many that lack them; neither: on one."""

    model: Annotated[str, Field(min_length=1, max_length=LONGEST_MODEL_NAME)]
    nodes: NodeNames = ()
    count: Annotated[int, Field(ge=1, le=MOST_FILE_NODES)] | None = None


class FilesBody(BaseModel, frozen=True, extra="forbid", json_schema_extra={"examples": [{"files": "tiny"}]}):
    """Files by their digest or by a model's name, and on which nodes, by name or id; none: on all that have them."""

    files: Annotated[str, Field(min_length=1, max_length=LONGEST_MODEL_NAME)]
    nodes: NodeNames = ()


class Files:
    """From memory."""

    def __init__(self, directory: Directory, asking: Asking, board: ProgressBoard) -> None:
        self._directory = directory
        self._asking = asking
        self._board = board
        self._named = FilesNamed()
        self.router = APIRouter(tags=["files"], responses=PROBLEMS, route_class=JSONRoute)
        add = answering(self.router)
        add("/api/files", self.list, "GET")
        add("/api/files/fetch", self.fetch, "POST")
        add("/api/files/pin", self.pin, "POST")
        add("/api/files/unpin", self.unpin, "POST")
        add("/api/files/remove", self.remove, "POST")

    async def list(self, after: Cursor = None, limit: Limit = 100) -> Answer[ModelFilesPage]:
        """A page of models' files, by digest: on which nodes they lie, come, or can't be had, and why."""
        fleet = self._directory.fleet
        users = await self._users()
        fitting = [files for files in known_files(fleet, users) if after is None or files > after]
        items = [files_shape(fleet, self._board, files, users.get(files, [])) for files in fitting[:limit]]
        return Answer({"items": items, "next": items[-1]["files"] if len(fitting) > limit else None})

    async def fetch(self, request: Request, body: FetchBody) -> Answer[FilesFetched]:
        """Have nodes fetch a model's files before a replica needs them, and keep them; 409 with the reason where they
        can't.

        Without `nodes` those are taken that lack them and have most room. Answers once it is decided: `GET /api/files`
        tells when they are there, or why they could not be fetched.
        """
        if body.nodes and body.count is not None:
            raise Refused(400, "nodes names the nodes: it takes no count beside it.", param="count")
        model, count = self._model(body.model), 0 if body.nodes else body.count or 1
        fact = FilesFetchRequested(model=model.id, nodes=self._nodes(body.nodes), count=count)
        return done(await self._asking.ask(request, fact))

    async def pin(self, request: Request, body: FilesBody) -> Answer[FilesFetched]:
        """Have nodes keep files that they have, whatever else is fetched there."""
        fact = FilesPinRequested(files=self._files(body.files), nodes=self._nodes(body.nodes))
        return done(await self._asking.ask(request, fact))

    async def unpin(self, request: Request, body: FilesBody) -> Answer[FilesKept]:
        """Let nodes keep files no longer than they need them. What was to be fetched ahead is so no more."""
        fact = FilesUnpinRequested(files=self._files(body.files), nodes=self._nodes(body.nodes))
        return done(await self._asking.ask(request, fact))

    async def remove(self, request: Request, body: FilesBody) -> Answer[FilesRemoved]:
        """Have nodes remove files, each once nothing there uses them; `in_use` names those where something does."""
        fact = FilesRemovalRequested(files=self._files(body.files), nodes=self._nodes(body.nodes))
        return done(await self._asking.ask(request, fact))

    async def _users(self) -> dict[str, Users]:
        found: dict[str, Users] = {}
        fleet = self._directory.fleet
        for number, model in enumerate([*fleet.models.values()]):
            if number % _A_TURN == _A_TURN - 1:
                await asyncio.sleep(0)
            for files, revision in files_users(fleet, model, self._named):
                found.setdefault(files, []).append((model, revision))
        return found

    def _model(self, ref: str) -> ModelView:
        """Raises Refused, 404, which lists what exists."""
        return self._directory.fleet.models.get(ModelId(ref)) or self._directory.model_for(ref)

    def _files(self, ref: str) -> str:
        """A digest that some node knows, or that of a model's newest revision. Raises Refused."""
        nodes = self._directory.fleet.nodes.values()
        if any(ref in node.fetched or ref in node.file_wishes.wanted for node in nodes):
            return ref
        model = self._model(ref)
        files = self._named.of(model, model.revision)
        if not files:
            raise Refused(409, f"Nothing is fetched of {model.name}: it lies on workers' own disks.", code="no_files")
        return files

    def _nodes(self, refs: tuple[str, ...]) -> tuple[NodeId, ...]:
        """Raises Refused, 404."""
        return tuple(named_node(self._directory, ref).id for ref in refs)
