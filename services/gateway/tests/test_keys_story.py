"""Keys over real gateways and a real log: the first one, what one gateway does and another hears, and an end."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from weft_contracts.api_key import ENTROPY_BYTES, first_key, hash_of, key_id, secret_of
from weft_contracts.subjects import kind_filter

World = Any
SECRET = secret_of(b"1" * ENTROPY_BYTES)
TOLD = {"WEFT_FIRST_KEY": first_key(SECRET), "WEFT_REQUIRE_KEYS": "1"}


@asynccontextmanager
async def caller(url: str, secret: str = SECRET) -> AsyncGenerator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url, headers={"authorization": f"Bearer {secret}"}, timeout=30) as client:
        yield client


async def two_gateways(world: World) -> tuple[str, str]:
    """The addresses of two that are told of the same first key, at the same time."""
    urls: list[str] = []
    for _ in range(2):
        world.port = 0
        await world.a_starting_gateway(**TOLD)
        urls.append(world.url)
    for url in urls:

        async def ready(url: str = url) -> bool:
            async with httpx.AsyncClient(timeout=30) as client:
                try:
                    return (await client.get(f"{url}/readyz")).status_code == 200
                except httpx.TransportError:
                    return False

        await world.until(ready)
    return urls[0], urls[1]


async def recorded(world: World) -> list[tuple[str, str, str]]:
    """Of each commit about keys: the key, its first fact, who."""
    return [(c.aggregate.key, c.facts[0].type, c.actor) async for c in world.log.read(kind_filter("key"))]


async def test_a_first_key_counts_once_at_every_gateway_and_what_one_makes_and_ends_the_other_hears_of(
    world: World,
) -> None:
    one, other = await two_gateways(world)
    first = key_id(hash_of(SECRET))
    assert [(first, "created", "gateway")] == await recorded(world)
    for url in (one, other):
        async with caller(url) as admin, httpx.AsyncClient(base_url=url, timeout=30) as stranger:
            assert (200, 401) == (
                (await admin.get("/api/status")).status_code,
                (await stranger.get("/api/status")).status_code,
            )
    # when one makes a key
    async with caller(one) as admin:
        made = (await admin.post("/api/keys", json={"scopes": ["read"]})).json()
        async with caller(other, made["secret"]) as reader:

            async def let_in() -> bool:
                return (await reader.get("/api/status")).status_code == 200

            await world.until(let_in)
            # given a stream of events that has no end
            async with reader.stream("GET", "/api/events", headers={"accept": "text/event-stream"}) as events:
                assert 200 == events.status_code
                assert 403 == (await reader.post("/api/brake/lift")).status_code
                # when the key is revoked at the first
                assert 200 == (await admin.delete(f"/api/keys/{made['prefix']}")).status_code
                # then the second lets nobody in by it, and the stream ends
                async with asyncio.timeout(30):
                    async for _ in events.aiter_bytes():
                        pass
            assert 401 == (await reader.get("/api/status")).status_code
        # and to revoke it again changes nothing
        assert 200 == (await admin.delete(f"/api/keys/{made['key']}")).status_code
    assert [(made["key"], "created", first), (made["key"], "revoked", first)] == (await recorded(world))[1:]


async def test_a_first_key_that_was_revoked_does_not_come_back(world: World) -> None:
    process = await world.a_gateway(**TOLD)
    async with caller(world.url) as admin:
        assert 200 == (await admin.delete(f"/api/keys/{key_id(hash_of(SECRET))}")).status_code
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.wait(), 30)
        await world.a_gateway(**TOLD)
        assert 401 == (await admin.get("/api/status")).status_code
    # and who has lost the last key tells the gateways of another
    another = secret_of(b"2" * ENTROPY_BYTES)
    world.gateways[-1].send_signal(signal.SIGTERM)
    await asyncio.wait_for(world.gateways[-1].wait(), 30)
    await world.a_gateway(**TOLD | {"WEFT_FIRST_KEY": first_key(another)})
    async with caller(world.url, another) as admin:
        items = (await admin.get("/api/keys")).json()["items"]
    assert ["live", "revoked"] == sorted(each["state"] for each in items)


async def test_bodies_and_names_that_no_key_can_have_are_refused(world: World) -> None:
    await world.a_gateway(**TOLD)
    async with caller(world.url) as admin:
        bodies: list[tuple[dict[str, Any], str]] = [
            ({"scopes": []}, "scopes"),
            ({"scopes": ["boss"]}, "scopes.0"),
            ({"models": []}, "models"),
            ({"models": ["a b"]}, "models.0"),
            ({"models": ["a"], "scopes": ["admin", "inference"]}, "models"),
            ({"models": ["a"], "scopes": ["read"]}, "models"),
            ({"expires_in_s": 0}, "expires_in_s"),
            ({"name": "a\nb"}, "name"),
            ({"name": "x" * 64}, "name"),
            ({"secret": "mine"}, "secret"),
        ]
        for body, param in bodies:
            refused = await admin.post("/api/keys", json=body)
            assert (400, param) == (refused.status_code, refused.json()["param"]), body
        assert 404 == (await admin.delete("/api/keys/nobody")).status_code
        # and two of a name are told apart by id
        for _ in range(2):
            assert 201 == (await admin.post("/api/keys", json={"name": "twin"})).status_code
        assert 409 == (await admin.delete("/api/keys/twin")).status_code
        # and the list has pages
        page = (await admin.get("/api/keys?limit=2")).json()
        rest = (await admin.get(f"/api/keys?limit=2&after={page['next']}")).json()
        assert (2, 1, None) == (len(page["items"]), len(rest["items"]), rest["next"])
        assert ["twin", "twin"] == [each["name"] for each in page["items"] + rest["items"] if each["name"]]
        assert [] == (await admin.get("/api/keys?state=revoked")).json()["items"]
