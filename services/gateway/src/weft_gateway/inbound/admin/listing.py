"""What every list has in common: a page, a cursor, and 503 where the tables are away."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Query
from weft_contracts.names import LONGEST_MODEL_NAME
from weft_readmodel.errors import TablesUnavailable

from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.http.answer import Answer

if TYPE_CHECKING:
    from weft_gateway.projections.tables.lists import Lists

Limit = Annotated[int, Query(ge=1, le=1000)]
PRINTABLE = r"^[^\x00-\x1f\x7f]*$"
"""PostgreSQL takes no NUL in a text."""
MAX_SEQUENCE = (1 << 63) - 1
Place = Annotated[int | None, Query(ge=0, le=MAX_SEQUENCE)]
"""A log sequence, or a number that is one."""
Word = Annotated[str | None, Query(max_length=128, pattern=PRINTABLE)]
Cursor = Annotated[str | None, Query(max_length=64, pattern=PRINTABLE)]
NameCursor = Annotated[str | None, Query(max_length=LONGEST_MODEL_NAME, pattern=PRINTABLE)]
"""Of what is listed by a name that people gave it."""
Source = Callable[[], "Lists | None"]


async def page(
    source: Source, read: Callable[["Lists"], Awaitable[list[Any]]], limit: int, cursor: str = "id"
) -> Answer[Any]:
    """`{"items": […], "next": cursor or null}`, as a gateway wrote it into the tables. Raises Refused, 503."""
    lists = source()
    if lists is None:
        raise _away("no database is set (WEFT_POSTGRES_URL)")
    try:
        items = await read(lists)
    except TablesUnavailable as error:
        raise _away(str(error)) from None
    return Answer({"items": items, "next": items[-1][cursor] if len(items) == limit else None})


def _away(why: str) -> Refused:
    return Refused(
        503,
        f"Lists are not to be had now: {why}. /api/status answers from memory.",
        code="tables_away",
        headers={"retry-after": "5"},
    )
