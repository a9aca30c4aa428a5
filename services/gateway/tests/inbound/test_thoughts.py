"""What a model thinks, as its engine tells it apart, and what its chat template is given."""

import asyncio
import json
from typing import Any

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import limits

from .conftest import Engine, Fronts

CHAT: dict[str, Any] = {"model": "sim", "messages": [{"role": "user", "content": "hi"}]}
GREEDY: dict[str, Any] = {"temperature": 0}


def think(engine: Engine, text: str) -> None:
    for ticket in engine.tickets.values():
        ticket.think(text)


@pytest.mark.parametrize("more", [{}, GREEDY, {"logprobs": True}], ids=["text", "resumable", "events"])
async def test_thoughts_come_before_the_text_in_either_form_of_answer(fronts: Fronts, more: dict[str, Any]) -> None:
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    scores = [pb.TokenScore(id=1, token=b"so", logprob=-1.0)] if "logprobs" in more else []

    wire.post(CHAT | more)
    await engine.has(1)
    assert engine.submits[-1].parsed
    think(engine, "hm")
    think(engine, "m")
    engine.step("so", scores)
    engine.finish_all()
    message = (await wire.answer()).json()["choices"][0]["message"]
    assert ("hmm", "so") == (message["reasoning_content"], message["content"])

    wire.post(CHAT | more | {"stream": True})
    await engine.has(1)
    think(engine, "hm")
    await wire.head()
    first = await wire.chunk()
    assert first.index(b'"role":"assistant"') < first.index(b'{"reasoning_content":"hm"}')
    engine.step("so", scores)
    assert b'"content":"so"' in await wire.chunk()
    engine.finish_all()


async def test_thoughts_of_a_replica_that_failed_are_not_told_with_another_one_s(fronts: Fronts) -> None:
    front = await fronts.open()
    first, second = await front.a_replica(1), await front.a_replica(2)
    wire = await fronts.connect(front)
    wire.post(CHAT)
    async with asyncio.timeout(10):
        while not (first.engine.tickets or second.engine.tickets):
            await asyncio.sleep(0.01)
    begun, other = (first, second) if first.engine.tickets else (second, first)
    think(begun.engine, "broken")
    await asyncio.sleep(0.1)  # it is on its way
    await begun.die()
    await other.engine.has(1)
    think(other.engine, "whole")
    other.engine.step("so")
    other.engine.finish_all()
    assert "whole" == (await wire.answer()).json()["choices"][0]["message"]["reasoning_content"]


async def test_template_variables_reach_the_engine_and_no_older_one(
    fronts: Fronts, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {"enable_thinking": False, "depth": [1]}
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    wire.post(CHAT | {"chat_template_kwargs": variables})
    await engine.has(1)
    assert variables == json.loads(engine.submits[-1].template_kwargs)
    engine.finish_all()
    assert 200 == (await wire.answer()).status

    wire.post(CHAT | {"chat_template_kwargs": {"x": "y" * 20_000}})
    refused = (await wire.answer()).json()["error"]
    assert ("chat_template_kwargs", True) == (refused["param"], "at most 16384" in refused["message"])

    monkeypatch.setattr("weft_dataplane.handshake.NEWEST_VERSION", limits.TEMPLATE_VERSION - 1)
    older = await fronts.open()
    await older.a_replica()
    wire = await fronts.connect(older)
    wire.post(CHAT | {"chat_template_kwargs": variables})
    answer = await wire.answer()
    assert 503 == answer.status
    assert "older release, without chat_template_kwargs" in answer.json()["error"]["message"]


async def test_what_tells_of_tools_is_marked_in_the_chat(fronts: Fronts) -> None:
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    function = {"name": "look", "description": "around", "parameters": {"type": "object"}}
    system = {"role": "system", "content": "Be kind."}
    wire.post(CHAT | {"messages": [system, *CHAT["messages"]], "tools": [{"type": "function", "function": function}]})
    await engine.has(1)
    submit = engine.submits[-1]
    engine.finish_all()
    await wire.answer()
    first = submit.chat.messages[0].content
    told = first[len(first) - submit.constraint.told :]
    assert "Be kind.\n\n" == first.removesuffix(told)
    assert function == json.loads(told.split("\n")[1])
