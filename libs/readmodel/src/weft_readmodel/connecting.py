"""Connections to Postgres, each statement bounded."""

from typing import Any, Protocol, cast

import asyncpg


class Connection(Protocol):
    """What is used of an asyncpg connection, which ships no types."""

    async def execute(self, query: str, *args: Any) -> str: ...
    async def fetchrow(self, query: str, *args: Any) -> Any: ...
    async def fetchval(self, query: str, *args: Any) -> Any: ...
    async def close(self) -> None: ...
    def transaction(self) -> Any: ...
    def terminate(self) -> None: ...


async def connect(dsn: str, *, schema: str = "public", timeout: float = 10.0) -> Connection:
    """Connect; `timeout` bounds the connecting and each statement, in seconds.

    What Postgres says comes as asyncpg.PostgresError, its absence as OSError or TimeoutError.
    """
    return await cast(Any, asyncpg).connect(
        dsn, timeout=timeout, command_timeout=timeout, server_settings={"search_path": schema}
    )
