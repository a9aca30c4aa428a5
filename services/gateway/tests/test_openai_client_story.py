"""The official client against a real gateway process and a real engine host."""

from typing import Any

import httpx
import openai
import pytest

World = Any
MESSAGES: Any = [{"role": "user", "content": "What is the capital of France?"}]


def client_of(world: World) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{world.url}/v1", api_key="none", max_retries=0, timeout=30)


async def test_the_official_client_lists_chats_and_streams(world: World) -> None:
    await world.a_node()
    await world.a_model("Org/sim-1")
    replica = await world.a_ready_replica()
    await world.a_gateway()
    async with client_of(world) as client:
        await speaks_to(client, world, replica)


async def speaks_to(client: openai.AsyncOpenAI, world: World, replica: str) -> None:
    models = [model.id async for model in client.models.list()]
    assert ["Org/sim-1"] == models
    assert "Org/sim-1" == (await client.models.retrieve("Org/sim-1")).id

    whole = await client.chat.completions.create(model="Org/sim-1", messages=MESSAGES, temperature=0, max_tokens=12)
    text = whole.choices[0].message.content
    assert text
    assert whole.usage is not None
    assert 12 == whole.usage.completion_tokens
    assert "length" == whole.choices[0].finish_reason

    pieces: list[str] = []
    finish, usage = None, None
    stream = await client.chat.completions.create(
        model="Org/sim-1",
        messages=MESSAGES,
        temperature=0,
        max_tokens=12,
        stream=True,
        stream_options={"include_usage": True},
    )
    async for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            pieces.append(choice.delta.content or "")
            finish = choice.finish_reason or finish
    assert text == "".join(pieces)
    assert "length" == finish
    assert usage is not None
    assert 12 == usage.completion_tokens

    completion = await client.completions.create(model="Org/sim-1", prompt="Once", max_tokens=5, temperature=0)
    assert completion.choices[0].text
    streamed = [
        chunk.choices[0].text
        async for chunk in await client.completions.create(
            model="Org/sim-1", prompt="Once", max_tokens=5, temperature=0, stream=True
        )
    ]
    assert completion.choices[0].text == "".join(streamed)

    async with httpx.AsyncClient(timeout=30) as raw:
        answer = await raw.post(
            f"{world.url}/v1/chat/completions",
            json={"model": "Org/sim-1", "messages": MESSAGES, "max_tokens": 2},
            headers={"x-request-id": "my-own-id.1", "x-weft-explain": "1"},
        )
    assert "my-own-id.1" == answer.headers["x-request-id"]
    assert replica == answer.headers["x-weft-replica"]
    assert answer.headers["x-weft-run-event"]

    async def logged() -> bool:
        return "my-own-id.1" in world.gateway_log()

    await world.until(logged)


async def test_an_unknown_model_is_a_404_that_lists_what_exists(world: World) -> None:
    await world.a_node()
    await world.a_model("sim")
    await world.a_gateway()
    async with client_of(world) as client:
        with pytest.raises(openai.NotFoundError, match="'none-such' does not exist; there is: sim"):
            await client.chat.completions.create(model="none-such", messages=MESSAGES)
