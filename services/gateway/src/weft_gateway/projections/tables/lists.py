"""Pages of the tables: by id, requests from the newest on."""

from collections.abc import Sequence
from typing import Any

from sqlmodel import SQLModel, col
from weft_readmodel.pages import Pages

from weft_gateway.projections.tables.rows import ModelRow, NodeRow, ReplicaRow, RequestRow


class Lists:
    """What people page through. Every method raises TablesUnavailable."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    async def nodes(
        self, after: str | None, limit: int, state: str | None, name: str | None, labels: Sequence[str]
    ) -> list[Any]:
        """Removed ones only when they are asked for. `labels`: `name=value`, or `name` for any value."""
        borne = col(NodeRow.body)["labels"]
        extra: list[Any] = [] if state else [col(NodeRow.state) != "removed"]
        for label in labels:
            key, equals, value = label.partition("=")
            extra.append(borne.contains({key: value}) if equals else borne.has_key(key))
        where = [(NodeRow.state, state), (NodeRow.name, name)]
        return await self._page(NodeRow, NodeRow.id, after, limit, where, extra)

    async def models(self, after: str | None, limit: int, state: str | None) -> list[Any]:
        """Deleted ones only when they are asked for."""
        where = [(ModelRow.state, state)]
        extra = [] if state else [col(ModelRow.state) != "deleted"]
        return await self._page(ModelRow, ModelRow.id, after, limit, where, extra)

    async def replicas(
        self, after: str | None, limit: int, state: str | None, model: str | None, node: str | None
    ) -> list[Any]:
        where = [(ReplicaRow.state, state), (ReplicaRow.model, model), (ReplicaRow.node, node)]
        return await self._page(ReplicaRow, ReplicaRow.id, after, limit, where)

    async def requests(self, before: int | None, limit: int, state: str | None) -> list[Any]:
        """The newest first."""
        where = [] if state is None else [col(RequestRow.state) == state]
        rows = await self._pages.newest(RequestRow, RequestRow.number, before=before, limit=limit, where=where)
        return [row.body for row in rows]

    async def close(self) -> None:
        await self._pages.close()

    async def _page(
        self,
        table: type[SQLModel],
        key: Any,
        after: str | None,
        limit: int,
        where: list[tuple[Any, str | None]],
        extra: list[Any] | None = None,
    ) -> list[Any]:
        conditions = [col(column) == value for column, value in where if value is not None]
        rows: list[Any] = await self._pages.page(
            table, key, after=after, limit=limit, where=[*conditions, *(extra or [])]
        )
        return [row.body for row in rows]
