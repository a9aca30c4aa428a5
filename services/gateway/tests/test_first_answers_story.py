"""What a gateway that has just come up answers to who asks at once."""

import asyncio
from typing import Any

import httpx
import pytest
from weft_contracts.api_key import ENTROPY_BYTES, first_key, hash_of, key_id, prefix_of, secret_of
from weft_contracts.facts.key import Created
from weft_contracts.subjects import api_key
from weft_testing.lagging_nats import LaggingNats

World = Any
SECRET = secret_of(b"1" * ENTROPY_BYTES)


def imported(log: str) -> list[str]:
    """The modules that a process imported, from Python's own import times in its log."""
    return [line.rpartition("|")[2].strip() for line in log.splitlines() if line.startswith("import time:")]


async def test_who_connects_as_soon_as_a_gateway_listens_waits_for_no_import(world_with_tables: World) -> None:
    world = world_with_tables
    await world.a_node()
    await world.a_model()
    await world.a_ready_replica()
    # when one is up that has a database, and everything of it was asked
    await world.a_gateway(PYTHONPROFILEIMPORTTIME="1")
    async with httpx.AsyncClient(base_url=world.url, timeout=30) as client:

        async def written() -> bool:
            return (await client.get("/api/status")).json()["tables"]["state"] == "following"

        await world.until(written)
        asked = {"model": "sim", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2}
        for said in (
            await client.post("/v1/chat/completions", json=asked),
            await client.get("/api/nodes"),
            await client.get("/v1/models"),
            await client.get("/metrics"),
        ):
            said.raise_for_status()
    # then all that it took was there before anybody could connect
    before, listening, behind = world.gateway_log().partition('"listening"')
    assert listening
    assert "sqlalchemy" in imported(before)
    assert [] == imported(behind)


@pytest.mark.parametrize("mesh", ["new", "old"])
async def test_who_has_a_good_key_is_never_told_that_it_is_unknown_while_the_log_lags(world: World, mesh: str) -> None:
    await world.a_node()
    await world.a_model()
    id, lacks = key_id(hash_of(SECRET)), await world.log.head()
    told = {"WEFT_REQUIRE_KEYS": "1", "WEFT_FIRST_KEY": first_key(SECRET)}  # which the gateway itself records
    if mesh == "old":  # where somebody made the key long ago
        del told["WEFT_FIRST_KEY"]
        await world.tell(api_key(id), Created(hash=hash_of(SECRET), prefix=prefix_of(SECRET), scopes=("admin",)))
        await world.a_placed_replica()
    # given a server that says that there is nothing behind what was there before the key
    async with LaggingNats(world.mesh.url, gives=lacks) as door:
        await world.a_starting_gateway(**told, WEFT_NATS_URL=door.url)
        await door.held_back()
        bearer = {"authorization": f"Bearer {SECRET}"}
        async with httpx.AsyncClient(base_url=world.url, headers=bearer, timeout=30) as admin:

            async def listens() -> int:
                try:
                    return (await admin.get("/readyz")).status_code
                except httpx.TransportError:
                    return 0

            await world.until(listens)
            for _ in range(10):
                for said in await admin.get("/api/status"), await admin.post("/v1/chat/completions", json={}):
                    assert (503, "1") == (said.status_code, said.headers.get("retry-after")), said.text
                await asyncio.sleep(0.1)
            door.catch_up()

            async def ready() -> bool:
                return (await admin.get("/readyz")).status_code == 200

            await world.until(ready)
            assert 200 == (await admin.get("/api/status")).status_code
            other = {"authorization": f"Bearer {secret_of(b'2' * ENTROPY_BYTES)}"}
            assert 401 == (await admin.get("/api/status", headers=other)).status_code
