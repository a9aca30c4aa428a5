"""Keeps the tables: takes the fence, catches up, then writes what the directory folds, in one place of the log.

Rows come from the same fold that routes requests, so the lists and `/api/status` never tell two stories.
"""

import asyncio
import random
from typing import Any

from sqlmodel import SQLModel
from weft_api import WriterState
from weft_contracts.ids import RequestId
from weft_contracts.subjects import kind_filter
from weft_eventlog import EventLog, LogUnavailable, Projection
from weft_readmodel.changes import Changes
from weft_readmodel.checkpoint import Position
from weft_readmodel.errors import FenceHeld, FenceLost
from weft_readmodel.tables import Tables, hold
from weft_runtime.logs import get_logger

from weft_gateway.domain.request_view import RequestView, evolve_request
from weft_gateway.projections.directory import Directory
from weft_gateway.projections.requests import Requests
from weft_gateway.projections.tables.mirror import Mirror, request_row
from weft_gateway.projections.tables.rows import FOLD_VERSION, TABLES, RequestRow

_log: Any = get_logger("weft.gateway.tables")
NAME = "gateway"
_CHUNK = 1000
_PAUSE = 1.0
_LONGEST_PAUSE = 10.0


class TableWriter:
    """Runs for ever; Postgres may come and go."""

    def __init__(
        self,
        dsn: str,
        log: EventLog,
        projection: Projection,
        directory: Directory,
        requests: Requests,
        *,
        schema: str = "public",
    ) -> None:
        self._dsn = dsn
        self._schema = schema
        self._log = log
        self._projection = projection
        self._directory = directory
        self._requests = requests
        self.state: WriterState = "starting"
        self.position = 0
        """How far the tables are written, by this gateway's knowledge."""

    async def run(self) -> None:
        """Hold the fence and write, again and again."""
        await self._projection.caught_up.wait()
        pause = _PAUSE
        while True:
            try:
                async with hold(self._dsn, NAME, TABLES, fold_version=FOLD_VERSION, schema=self._schema) as tables:
                    pause = _PAUSE
                    await self.follow(tables)
            except FenceHeld:
                self.state = "another gateway"
            except (FenceLost, LogUnavailable) as error:
                _log.warning("tables are begun anew", why=str(error))
            except Exception as error:  # whatever Postgres or its driver says, the tables are only for people
                if self.state != "away":
                    _log.warning("tables not written", why=repr(error))
                self.state = "away"
            await asyncio.sleep(pause * random.uniform(0.7, 1.3))
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def follow(self, tables: Tables) -> None:
        """Catch up, then write whenever something was folded. Ends by an error only."""
        if await self._rewound(tables.position):
            _log.warning("the log was rewound: tables are folded again", position=tables.position.sequence)
            await tables.drop()
        mirror = Mirror(self._directory)
        await self._write(tables, mirror, await self._missed(tables.position.sequence, tables))
        self.state = "following"
        while True:
            if self._directory.fleet.position > tables.position.sequence:
                await self._write(tables, mirror, self._requests.since(tables.position.sequence))
            elif not await self._projection.moved(timeout=30.0):
                await tables.write(Changes(), tables.position)  # still ours? and is Postgres still there?

    async def _write(self, tables: Tables, mirror: Mirror, requests: Any) -> None:
        # Position and rows are read without an await between them: they belong together.
        directory = self._directory
        at = Position(self._projection.identity or "", directory.fleet.position, directory.event_id)
        await tables.write(mirror.changes(requests), at)
        self.position = at.sequence

    async def _rewound(self, at: Position) -> bool:
        """Whether the stream is not the one that the tables were folded from."""
        if at.sequence == 0:
            return False
        if at.identity != self._projection.identity or at.sequence > self._projection.position:
            return True
        found = await self._log.event_id_at(at.sequence)
        return found is not None and bool(at.event_id) and found != at.event_id

    async def _missed(self, after: int, tables: Tables) -> list[RequestView]:
        """Requests that moved since the tables were written: kept ones, or from the log where too many did."""
        if self._requests.forgotten <= after:
            return list(self._requests.since(after))
        views: dict[RequestId, RequestView] = {}
        rows: list[SQLModel] = []
        async for commit in self._log.read(kind_filter("request"), upto=self._projection.position):
            id = RequestId(commit.aggregate.key)
            view = evolve_request(views.get(id), commit)
            if view is None:
                continue
            if view.outcome is None:
                views[id] = view
            else:
                views.pop(id, None)  # it moves no more
            if view.sequence > after:
                rows.append(request_row(view))
            if len(rows) >= _CHUNK:
                await tables.write(Changes(rows={RequestRow: _last(rows)}), tables.position)
                rows.clear()
        await tables.write(Changes(rows={RequestRow: _last(rows)}), tables.position)
        return []


def _last(rows: list[SQLModel]) -> list[SQLModel]:
    """One row per request, the newest: a statement may not touch a row twice."""
    return list({getattr(row, "id"): row for row in rows}.values())  # noqa: B009
