"""A set of tables that one process at a time folds from the log, rows and checkpoint in one transaction.

Two locks hold the fence: an advisory lock, so that a second writer waits instead of working in vain, and the
checkpoint's compare-and-set, which is what makes it right.
"""

import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Self

from sqlmodel import SQLModel

from weft_readmodel import checkpoint, shape
from weft_readmodel.bulk import Upsert
from weft_readmodel.changes import Changes
from weft_readmodel.checkpoint import START, Position
from weft_readmodel.connecting import Connection, connect
from weft_readmodel.errors import FenceHeld


class Tables:
    """The writer's hold on its tables, for as long as its connection lives. Made by `hold`."""

    def __init__(
        self,
        connection: Connection,
        name: str,
        models: Sequence[type[SQLModel]],
        digest: str,
        position: Position,
    ) -> None:
        self._connection = connection
        self._name = name
        self._models = tuple(models)
        self._digest = digest
        self._upserts = {model: Upsert(model) for model in models}
        self.position = position
        """What the tables hold now; START after a drop."""

    @classmethod
    async def _of(cls, connection: Connection, name: str, models: Sequence[type[SQLModel]], fold_version: int) -> Self:
        digest = shape.shape_digest(models, fold_version)
        await connection.execute(checkpoint.CREATE)
        found = await checkpoint.load(connection, name)
        tables = cls(connection, name, models, digest, found[0] if found else START)
        if found is None or found[1] != digest:
            await tables.drop()
        return tables

    async def drop(self) -> None:
        """Throw the rows away and make the tables anew: they will be folded again from the start."""
        async with self._connection.transaction():
            for model in self._models:
                await self._connection.execute(f'drop table if exists "{shape.table_of(model).name}"')
            for statement in shape.statements(self._models):
                await self._connection.execute(statement)
            await checkpoint.reset(self._connection, self._name, START, self._digest)
        self.position = START

    async def write(self, changes: Changes, at: Position) -> None:
        """Write rows and move the checkpoint, all or nothing. Raises FenceLost."""
        async with self._connection.transaction():
            await checkpoint.move(self._connection, self._name, self.position, at)
            for model, keys in changes.gone.items():
                await self._delete(model, keys, "= any")
            for model, keys in changes.only.items():
                await self._delete(model, keys, "<> all")
            for model, rows in changes.rows.items():
                await self._upserts[model].write(self._connection, rows)
        self.position = at

    async def _delete(self, model: type[SQLModel], keys: Sequence[str], how: str) -> None:
        table = shape.table_of(model)
        [key] = table.primary_key.columns
        await self._connection.execute(f'delete from "{table.name}" where "{key.name}" {how}($1::text[])', list(keys))


@asynccontextmanager
async def hold(
    dsn: str,
    name: str,
    models: Sequence[type[SQLModel]],
    *,
    fold_version: int = 1,
    schema: str = "public",
    timeout: float = 10.0,
) -> AsyncGenerator[Tables]:
    """Connect, take the fence and see to the tables' shape: other tables than these are dropped and made anew.

    `timeout` bounds each statement, in seconds. Raises FenceHeld while another process has it; what Postgres
    says comes as asyncpg.PostgresError, its absence as OSError or TimeoutError.
    """
    connection = await connect(dsn, schema=schema, timeout=timeout)
    try:
        key = int.from_bytes(hashlib.sha256(f"{schema}.{name}".encode()).digest()[:8], signed=True)
        if not await connection.fetchval("select pg_try_advisory_lock($1)", key):
            raise FenceHeld(f"another process writes the tables of {name}")
        yield await Tables._of(connection, name, models, fold_version)
    finally:
        connection.terminate()  # gives the lock back, and never waits for a server that is gone
