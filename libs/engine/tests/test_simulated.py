"""The simulated engine, over a real session with a real process."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import SessionClient, UnaryCallFailed

StartHost = Callable[..., AbstractAsyncContextManager[Any]]
Ask = Callable[..., Any]

FAST = {"ms_per_token": 0.5, "block_tokens": 4}
GREEDY = pb.Sampling(temperature=0)


@pytest.fixture
async def client(start: StartHost) -> AsyncGenerator[SessionClient, None]:
    async with start(engine_args=FAST, max_waiting=20) as host:
        await host.phase("ready")
        client = await host.open()
        yield client
        await client.close()


@pytest.mark.parametrize("after", [0, 1, 7])
async def test_a_resumed_answer_equals_the_uninterrupted_one(client: SessionClient, ask: Ask, after: int) -> None:
    whole = ask(client, "go on", sampling=GREEDY)
    await whole.end()

    sent = "".join(output.text for output in whole.outputs)
    words = sent.split(" ")
    text_sent = " ".join(words[:after])
    rest = ask(
        client,
        "go on",
        sampling=GREEDY,
        resume=pb.Resume(output_ids=whole.ids[:after], text_sent=text_sent),
    )
    await rest.end()

    assert whole.text == text_sent + rest.text
    assert whole.ids == whole.ids[:after] + rest.ids


async def test_a_repeated_beginning_is_found_in_the_cache(client: SessionClient, ask: Ask) -> None:
    words = " ".join(f"word{i}" for i in range(40))
    first = await ask(client, words, max_tokens=1).end()
    second = await ask(client, words + " and more", max_tokens=1).end()

    assert 0 == first.usage.cached_tokens
    assert first.usage.prompt_tokens // 4 * 4 == second.usage.cached_tokens


async def test_trouble_on_demand(client: SessionClient, ask: Ask) -> None:
    failed = await ask(client, "please [[fail]]").end()
    refused = await ask(client, "please [[refuse]]").end()

    assert (pb.FINISH_ERROR, pb.FAULT_ENGINE) == (failed.finish, failed.fault)
    assert pb.FAULT_BAD_REQUEST == refused.fault


async def next_frame(client: SessionClient) -> None:
    """Return when the engine has said something more."""
    heard = client._heard
    async with asyncio.timeout(30):
        while heard == client._heard:
            await asyncio.sleep(0.02)


async def test_a_stalled_engine_keeps_talking_but_its_steps_stand_still(client: SessionClient, ask: Ask) -> None:
    stalled = ask(client, "please [[stall]]")
    await stalled.first.wait()
    for _ in range(2):
        await next_frame(client)
    steps = client.load.steps
    await next_frame(client)
    assert steps == client.load.steps
    assert 1 == client.load.running


async def test_tokens_are_counted_as_the_engine_counts_them(client: SessionClient, ask: Ask) -> None:
    chat = pb.Chat(messages=[pb.Message(role="user", content="how many are these")])
    counted = await client.unary.count(chat)
    last = await ask(client, "how many are these", max_tokens=1).end()

    assert counted == last.usage.prompt_tokens
    with pytest.raises(UnaryCallFailed, match="makes no embeddings"):
        await client.unary.embed(["a"])
