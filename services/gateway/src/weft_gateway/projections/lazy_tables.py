"""The tables that people page through, if this gateway can have them: pages to read, and the writer's state."""

import asyncio
from typing import TYPE_CHECKING

from weft_api import Tables
from weft_eventlog import EventLog, Projection

from weft_gateway.projections.directory import Directory
from weft_gateway.projections.requests import Requests

if TYPE_CHECKING:
    from weft_gateway.projections.tables.lists import Lists
    from weft_gateway.projections.tables.writer import TableWriter


class LazyTables:
    """Knows SQLAlchemy only where there is a database, and from before anybody can connect."""

    def __init__(
        self, dsn: str | None, log: EventLog, projection: Projection, directory: Directory, requests: Requests
    ) -> None:
        self._dsn = dsn
        self._log = log
        self._projection = projection
        self._directory = directory
        self._requests = requests
        self._lists: Lists | None = None
        self._writer: TableWriter | None = None

    def load(self) -> None:
        """Import what the tables are made of: half a second of CPU, seconds on a crowded machine, in which this process
        answers nothing. So before it listens, while whoever asks is refused at once and asks another gateway."""
        if self._dsn is None:
            return
        from weft_readmodel.pages import Pages

        from weft_gateway.projections.tables.lists import Lists
        from weft_gateway.projections.tables.writer import TableWriter

        self._lists = Lists(Pages(self._dsn))
        self._writer = TableWriter(self._dsn, self._log, self._projection, self._directory, self._requests)

    def lists(self) -> "Lists | None":
        """Pages of the tables; None where no database is set."""
        return self._lists

    def standing(self) -> Tables:
        """For `/api/status`."""
        if self._writer is None:
            return {"state": "off", "position": 0}
        return {"state": self._writer.state, "position": self._writer.position}

    async def run(self) -> None:
        """Write the tables for as long as this gateway holds the fence, for ever."""
        if self._writer is None:
            await asyncio.Event().wait()
            return
        await self._writer.run()

    async def close(self) -> None:
        """Give the connections back."""
        if self._lists is not None:
            await self._lists.close()
