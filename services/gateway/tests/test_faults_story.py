"""A real gateway while processes around it die: engine hosts, NATS, and the gateway itself."""

import asyncio
import signal
from collections.abc import Callable
from typing import Any

import httpx
import openai
import pytest

World = Any
MESSAGES: Any = [{"role": "user", "content": "Count to a hundred"}]


def client_of(world: World) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{world.url}/v1", api_key="none", max_retries=0, timeout=30)


async def test_a_stream_survives_the_kill_of_its_engine_host_word_for_word(world: World) -> None:
    await world.a_node()
    await world.a_model()
    first, second = await world.a_ready_replica(1), await world.a_ready_replica(2)
    await world.a_gateway()
    ask: Any = {
        "model": "sim",
        "messages": MESSAGES,
        "temperature": 0,
        "max_tokens": 60,
        "extra_body": {"ignore_eos": True},
        "extra_headers": {"x-weft-explain": "1"},
    }
    async with client_of(world) as typed:
        client: Any = typed
        expected = (await client.chat.completions.create(**ask)).choices[0].message.content
        stream = await client.chat.completions.create(**ask, stream=True)
        ran = stream.response.headers["x-weft-replica"]
        assert ran in (first, second)
        pieces: list[str] = []
        async for chunk in stream:
            pieces.append(chunk.choices[0].delta.content or "")
            if len(pieces) == 5:
                await world.hosts[ran].kill()
        assert expected == "".join(pieces)
        draw = await client.chat.completions.create(**(ask | {"temperature": 1.0}), stream=True)
        for host in world.hosts.values():
            await host.kill()
        with pytest.raises(openai.APIError, match="The replica failed"):
            [chunk async for chunk in draw]


async def test_inference_goes_on_while_nats_is_away_and_changes_are_503(world: World) -> None:
    await world.a_node()
    await world.a_model()
    await world.a_ready_replica()
    await world.a_gateway()
    world.mesh.server.stop()
    async with client_of(world) as client, httpx.AsyncClient(base_url=world.url, timeout=30) as admin:
        await world.until(lambda: says(admin, "/api/status", lambda said: not said["log"]["connected"]))
        for _ in range(5):
            said = await client.chat.completions.create(model="sim", messages=MESSAGES, max_tokens=3)
            assert said.choices[0].message.content
        assert 200 == (await admin.get("/readyz")).status_code
        assert 200 == (await admin.get("/v1/models")).status_code
        assert 503 == (await admin.delete("/api/models/sim")).status_code
        assert 503 == (await admin.get("/api/events")).status_code
        await asyncio.to_thread(world.mesh.start_again)
        await world.until(lambda: says(admin, "/api/status", lambda said: said["log"]["connected"]))
        await world.deleted()
        await world.until(lambda: says(admin, "/v1/models", lambda said: said["data"] == []))


async def test_sigterm_lets_a_running_stream_finish(world: World) -> None:
    await world.a_node()
    await world.a_model()
    await world.a_ready_replica(1, ms_per_token=20)
    process = await world.a_gateway(WEFT_FINISH_WAIT_S="6")
    async with client_of(world) as client:
        stream = await client.chat.completions.create(
            model="sim",
            messages=MESSAGES,
            max_tokens=50,
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"ignore_eos": True},
        )
        pieces, usage = 0, None
        async for chunk in stream:
            pieces += 1
            usage = chunk.usage or usage
            if pieces == 3:
                process.send_signal(signal.SIGTERM)
        assert usage is not None
        assert 50 == usage.completion_tokens
        assert 0 == await asyncio.wait_for(process.wait(), 30)


async def test_what_cant_be_meant_is_refused_with_a_sentence(world: World) -> None:
    await world.a_gateway()
    for settings, status, words in (
        ({}, 1, f"can't listen on 127.0.0.1:{world.port}"),
        ({"WEFT_REQUIRE_KEYS": "1", "WEFT_ALLOW_ANONYMOUS": "1"}, 2, "contradict each other: set one of them"),
        ({"WEFT_FIRST_KEY": "weft-secret"}, 2, "WEFT_FIRST_KEY: want <prefix>:<SHA-256 in hex>"),
    ):
        process = await world.a_starting_gateway(**settings)
        assert status == await asyncio.wait_for(process.wait(), 60)
        assert words in world.gateway_log()


async def says(client: httpx.AsyncClient, path: str, holds: Callable[[Any], Any]) -> bool:
    said = await client.get(path)
    return said.status_code == 200 and bool(holds(said.json()))
