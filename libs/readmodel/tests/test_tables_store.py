"""The tables against a real Postgres: one writer, all or nothing, drop and fold on another shape."""

import zlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import Column
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel
from weft_readmodel.changes import Changes
from weft_readmodel.checkpoint import START, Position
from weft_readmodel.connecting import connect
from weft_readmodel.errors import FenceHeld, FenceLost, TablesUnavailable
from weft_readmodel.pages import Pages
from weft_readmodel.tables import hold
from weft_servers.postgres_server import PostgresServer


class Loom(SQLModel, table=True):
    __tablename__ = "looms"  # pyright: ignore[reportAssignmentType]

    id: str = Field(primary_key=True)
    threads: int
    pattern: Any = Field(default=None, sa_column=Column(JSONB))
    broken: bool = False


@pytest_asyncio.fixture
async def schema(postgres: PostgresServer, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    name = f"s{zlib.crc32(request.node.nodeid.encode())}"
    connection = await connect(postgres.url)
    await connection.execute(f"create schema {name}")
    yield name
    await connection.execute(f"drop schema {name} cascade")
    await connection.close()


def at(sequence: int, identity: str = "s1") -> Position:
    return Position(identity, sequence, f"e{sequence}")


async def rows_of(dsn: str, schema: str) -> list[tuple[str, int, Any]]:
    pages = Pages(dsn, schema=schema)
    found = await pages.page(Loom, Loom.id, after=None, limit=100)
    await pages.close()
    return [(row.id, row.threads, row.pattern) for row in found]


async def test_rows_and_checkpoint_stand_together(postgres: PostgresServer, schema: str) -> None:
    async with hold(postgres.url, "t", [Loom], schema=schema) as tables:
        assert START == tables.position
        await tables.write(
            Changes(rows={Loom: [Loom(id="a", threads=1, pattern={"x": [1, [2]]}), Loom(id="b", threads=2)]}),
            at(7),
        )
        await tables.write(Changes(rows={Loom: [Loom(id="a", threads=5)]}, gone={Loom: ["b"]}), at(9))
    async with hold(postgres.url, "t", [Loom], schema=schema) as tables:
        assert at(9) == tables.position
    assert [("a", 5, None)] == await rows_of(postgres.url, schema)


async def test_json_comes_back_as_it_went_in(postgres: PostgresServer, schema: str) -> None:
    pattern = {"labels": {"zone": "a"}, "list": [1, [2, 3]], "none": None}
    async with hold(postgres.url, "t", [Loom], schema=schema) as tables:
        await tables.write(Changes(rows={Loom: [Loom(id="a", threads=1, pattern=pattern)]}), at(1))
    assert [("a", 1, pattern)] == await rows_of(postgres.url, schema)


async def test_what_is_not_among_the_only_keys_is_taken_away(postgres: PostgresServer, schema: str) -> None:
    async with hold(postgres.url, "t", [Loom], schema=schema) as tables:
        await tables.write(Changes(rows={Loom: [Loom(id=k, threads=1) for k in "abc"]}), at(1))
        await tables.write(Changes(rows={Loom: [Loom(id="d", threads=1)]}, only={Loom: ["b", "d"]}), at(2))
    assert ["b", "d"] == [row[0] for row in await rows_of(postgres.url, schema)]


async def test_a_second_writer_is_refused_while_the_first_lives(postgres: PostgresServer, schema: str) -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(hold(postgres.url, "t", [Loom], schema=schema))
        with pytest.raises(FenceHeld):
            await stack.enter_async_context(hold(postgres.url, "t", [Loom], schema=schema))
    async with hold(postgres.url, "t", [Loom], schema=schema):
        pass


async def test_a_writer_whose_checkpoint_moved_without_it_keeps_nothing(postgres: PostgresServer, schema: str) -> None:
    async with hold(postgres.url, "t", [Loom], schema=schema) as tables:
        await tables.write(Changes(), at(1))
        other = await connect(postgres.url, schema=schema)
        await other.execute("update weft_checkpoint set stream_seq = 2")
        await other.close()
        with pytest.raises(FenceLost):
            await tables.write(Changes(rows={Loom: [Loom(id="a", threads=1)]}), at(3))
    assert [] == await rows_of(postgres.url, schema)


async def test_another_shape_drops_what_stood_there(postgres: PostgresServer, schema: str) -> None:
    async with hold(postgres.url, "t", [Loom], schema=schema) as tables:
        await tables.write(Changes(rows={Loom: [Loom(id="a", threads=1)]}), at(4))
    async with hold(postgres.url, "t", [Loom], schema=schema, fold_version=2) as tables:
        assert START == tables.position
    assert [] == await rows_of(postgres.url, schema)


async def test_pages_follow_one_another_by_key(postgres: PostgresServer, schema: str) -> None:
    async with hold(postgres.url, "t", [Loom], schema=schema) as tables:
        rows = [Loom(id=f"{n:04}", threads=n) for n in range(2500)]
        await tables.write(Changes(rows={Loom: rows}), at(1))
    pages = Pages(postgres.url, schema=schema)
    first = await pages.page(Loom, Loom.id, after=None, limit=2)
    second = await pages.page(Loom, Loom.id, after=first[-1].id, limit=2)
    newest = await pages.newest(Loom, Loom.id, before=None, limit=1)
    assert ["0000", "0001", "0002", "0003"] == [row.id for row in [*first, *second]]
    assert "2499" == newest[0].id
    await pages.close()


async def test_pages_say_that_postgres_is_away() -> None:
    pages = Pages("postgresql://weft@127.0.0.1:1/weft", timeout=2)
    with pytest.raises(TablesUnavailable):
        await pages.page(Loom, Loom.id, after=None, limit=1)
    await pages.close()
