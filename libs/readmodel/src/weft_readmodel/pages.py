"""Reading: pages of a table by key, from a small pool of connections."""

from collections.abc import Sequence
from typing import Any, TypeVar

import asyncpg
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlmodel import SQLModel, col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from weft_readmodel.connecting import connect
from weft_readmodel.errors import TablesUnavailable

_ASYNCPG: tuple[type[Exception], ...] = (asyncpg.PostgresError, asyncpg.InterfaceError)
M = TypeVar("M", bound=SQLModel)


class Pages:
    """Answers lists. Holds at most three connections, opened when they are first needed."""

    def __init__(self, dsn: str, *, schema: str = "public", timeout: float = 5.0) -> None:
        async def connected(*_: Any, **__: Any) -> Any:
            return await connect(dsn, schema=schema, timeout=timeout)

        self._engine = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=connected,
            pool_size=1,
            max_overflow=2,
            pool_timeout=timeout,
            pool_pre_ping=True,
        )

    async def page(
        self, model: type[M], key: Any, *, after: Any | None, limit: int, where: Sequence[Any] = ()
    ) -> list[M]:
        """The next `limit` rows behind a key, in its order. `key` is a column that no two rows share.

        Raises TablesUnavailable.
        """
        query = select(model).where(*where).order_by(col(key)).limit(limit)
        if after is not None:
            query = query.where(col(key) > after)
        return await self._all(query)

    async def newest(
        self, model: type[M], key: Any, *, before: Any | None, limit: int, where: Sequence[Any] = ()
    ) -> list[M]:
        """The next `limit` rows before a key, the largest first. Raises TablesUnavailable."""
        query = select(model).where(*where).order_by(col(key).desc()).limit(limit)
        if before is not None:
            query = query.where(col(key) < before)
        return await self._all(query)

    async def close(self) -> None:
        """Give the connections back."""
        await self._engine.dispose()

    async def _all(self, query: Any) -> list[Any]:
        try:
            async with AsyncSession(self._engine) as session:
                execute: Any = session.exec
                return list((await execute(query)).all())
        except (SQLAlchemyError, *_ASYNCPG, OSError, TimeoutError) as error:
            raise TablesUnavailable(f"Postgres did not answer: {type(error).__name__}") from error
