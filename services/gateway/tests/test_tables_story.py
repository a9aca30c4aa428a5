"""The tables for people: folded, thrown away, folded again, and away."""

import asyncio
from typing import Any

import httpx
import pytest
from weft_contracts.facts.node import Labelled, Removed
from weft_contracts.facts.request import DeployRequested, Fulfilled
from weft_contracts.ids import NodeId, RequestId
from weft_contracts.subjects import node, request
from weft_gateway.projections.tables.rows import TABLES
from weft_readmodel.connecting import connect
from weft_readmodel.shape import table_of

pytestmark = pytest.mark.slow

World = Any
NODE = NodeId("n-aaaaaaaaaaaaaaaa")


async def rows(world: World) -> dict[str, Any]:
    connection: Any = await connect(world.postgres.url)
    try:
        found: dict[str, Any] = {}
        for table in TABLES:
            name = table_of(table).name
            found[name] = [dict(row) for row in await connection.fetch(f'select * from "{name}" order by id')]
        return found
    finally:
        await connection.close()


async def written(world: World) -> None:
    """Wait until the tables hold all that the log does."""
    head = await world.log.head()

    async def there() -> bool:
        async with httpx.AsyncClient(base_url=world.url, timeout=30) as client:
            tables = (await client.get("/api/status")).json()["tables"]
            return tables["state"] == "following" and tables["position"] >= head

    await world.until(there)


async def a_life(world: World) -> None:
    await world.a_node()
    await world.a_model()
    await world.a_ready_replica(1)
    second = await world.a_placed_replica(2)
    await world.retired(second)
    asked = DeployRequested(name="sim", spec=world.spec)
    await world.tell(request(RequestId("q-1")), asked)
    await world.tell(request(RequestId("q-1")), Fulfilled(result={"model": "m"}))
    await world.tell(request(RequestId("q-2")), asked)


async def test_tables_thrown_away_and_folded_again_are_equal(world_with_tables: World) -> None:
    world = world_with_tables
    process = await world.a_gateway()
    await a_life(world)
    await written(world)
    before = await rows(world)
    assert [1, 1, 2, 2] == [len(before[name]) for name in ("nodes", "models", "replicas", "requests")]

    process.terminate()
    await process.wait()
    await world.deleted()
    await world.a_gateway()
    await written(world)
    caught_up = await rows(world)
    assert before != caught_up

    world.gateways[-1].terminate()
    await world.gateways[-1].wait()
    connection = await connect(world.postgres.url)
    await connection.execute("update weft_checkpoint set shape = 'another'")
    await connection.close()
    await world.a_gateway()
    await written(world)
    assert caught_up == await rows(world)


async def test_lists_are_pages_and_503_while_postgres_is_away(world_with_tables: World) -> None:
    world = world_with_tables
    await world.a_gateway()
    await a_life(world)
    await world.tell(node(NODE), Labelled(labels={"zone": "a", "rack": "r1"}))
    await world.tell(node(await world.a_node(NodeId("n-bbbbbbbbbbbbbbbb"))), Removed(why="sold"))
    await written(world)
    async with httpx.AsyncClient(base_url=world.url, timeout=30) as client:
        nodes = (await client.get("/api/nodes")).json()
        assert ["healthy"] == [each["state"] for each in nodes["items"]]
        found = {
            question: [each["name"] for each in (await client.get(f"/api/nodes?{question}")).json()["items"]]
            for question in (
                "label=zone=a&label=rack",
                "label=zone=b",
                "label=none",
                "name=node-bbbb",
                "state=removed",
                "state=healthy&label=zone",
            )
        }
        assert {
            "label=zone=a&label=rack": ["node-aaaa"],
            "label=zone=b": [],
            "label=none": [],
            "name=node-bbbb": [],
            "state=removed": ["node-bbbb"],
            "state=healthy&label=zone": ["node-aaaa"],
        } == found
        page = (await client.get("/api/replicas?limit=1")).json()
        more = (await client.get(f"/api/replicas?limit=5&after={page['next']}")).json()
        assert ["m-aaaaaaaaaaaaaaaa-1", "m-aaaaaaaaaaaaaaaa-2"] == [
            replica["id"] for replica in page["items"] + more["items"]
        ]
        assert "ready" == (await client.get("/api/replicas?state=ready")).json()["items"][0]["state"]
        requests = (await client.get("/api/requests")).json()["items"]
        assert [("q-2", "pending"), ("q-1", "fulfilled")] == [(item["id"], item["state"]) for item in requests]
        assert ["sim"] == [model["name"] for model in (await client.get("/api/models")).json()["items"]]
        assert 400 == (await client.get("/api/models?limit=1001")).status_code

        connection = await connect(world.postgres.url)
        await connection.execute("alter table nodes rename to elsewhere")
        await connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = 'weft'"
        )
        assert 503 == (await client.get("/api/nodes")).status_code
        assert 200 == (await client.get("/api/status")).status_code
        await connection.execute("alter table elsewhere rename to nodes")
        await connection.close()

        async def back() -> bool:
            return (await client.get("/api/nodes")).status_code == 200

        await world.until(back)
        await world.deleted()
        await written(world)


async def test_of_two_gateways_one_writes_and_the_other_takes_over(world_with_tables: World) -> None:
    world = world_with_tables
    first = await world.a_gateway()
    await a_life(world)
    await written(world)
    port, world.port = world.port, 0
    await world.a_gateway()
    async with httpx.AsyncClient(base_url=world.url, timeout=30) as client:

        async def waits() -> bool:
            return (await client.get("/api/status")).json()["tables"]["state"] == "another gateway"

        await world.until(waits)
    first.kill()
    await asyncio.wait_for(first.wait(), 30)
    await world.deleted()
    await written(world)
    assert port != world.port
    assert ["deleted"] == [row["state"] for row in (await rows(world))["models"]]
