"""Several choices of one request, log probabilities and calls, over a real socket."""

import asyncio
import json
from typing import Any

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Ending, limits
from weft_gateway.inbound.inference.limits import Limits

Fronts = Any
CHAT: dict[str, Any] = {"model": "sim", "messages": [{"role": "user", "content": "hi"}]}
SCORE = pb.TokenScore(id=7, token=b"a", logprob=-0.5, likeliest=[pb.TokenScore(id=7, token=b"a", logprob=-0.5)])
TOOLS = [{"type": "function", "function": {"name": "look"}}]


async def test_choices_share_one_answer_and_the_prompt_counts_once(fronts: Fronts) -> None:
    front = await fronts.open()
    replica = await front.a_replica()
    wire = await fronts.connect(front)
    wire.post(CHAT | {"n": 3, "seed": 4})
    await replica.engine.has(3)
    assert [4, 5, 6] == sorted(submit.sampling.seed for submit in replica.engine.submits)
    replica.engine.step("x")
    replica.engine.finish_all()
    answer = (await wire.answer()).json()
    assert [(0, "x"), (1, "x"), (2, "x")] == [(c["index"], c["message"]["content"]) for c in answer["choices"]]
    assert (3, 6) == (answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"])
    assert set() == front.dispatcher.in_flight


async def test_a_stream_of_choices_ends_once_with_the_usage_of_all(fronts: Fronts) -> None:
    front = await fronts.open()
    replica = await front.a_replica()
    wire = await fronts.connect(front)
    wire.post(CHAT | {"n": 2, "stream": True, "stream_options": {"include_usage": True}})
    await replica.engine.has(2)
    replica.engine.step("x")
    replica.engine.finish_all()
    *chunks, usage, done = (await wire.answer()).events
    assert "[DONE]" == done
    assert (3, 4) == (usage["usage"]["prompt_tokens"], usage["usage"]["completion_tokens"])
    said = {(c["index"], c["delta"].get("content")) for chunk in chunks for c in chunk["choices"]}
    assert {(0, "x"), (1, "x")} <= said
    assert [0, 1] == sorted(c["index"] for chunk in chunks for c in chunk["choices"] if c["finish_reason"])


async def test_prompts_of_one_completion_count_each(fronts: Fronts) -> None:
    front = await fronts.open()
    replica = await front.a_replica()
    wire = await fronts.connect(front)
    wire.post({"model": "sim", "prompt": ["a", "b"], "echo": True}, path="/v1/completions")
    await replica.engine.has(2)
    replica.engine.step("x")
    replica.engine.finish_all()
    answer = (await wire.answer()).json()
    assert ["ax", "bx"] == [choice["text"] for choice in answer["choices"]]
    assert 6 == answer["usage"]["prompt_tokens"]


async def test_one_refused_choice_refuses_all_and_a_client_that_leaves_ends_all(fronts: Fronts) -> None:
    front = await fronts.open()
    replica = await front.a_replica()
    wire = await fronts.connect(front)
    wire.post(CHAT | {"n": 2})
    await replica.engine.has(2)
    first, second = replica.engine.tickets.values()
    first.fail(pb.FAULT_BAD_REQUEST, "no", "bias")
    answer = await wire.answer()
    error = answer.json()["error"]
    assert (400, "No.", "logit_bias") == (answer.status, error["message"], error["param"])
    await replica.engine.has(1)
    assert [second.number] == replica.engine.cancelled
    replica.engine.tickets.clear()

    wire.post(CHAT | {"n": 2})
    await replica.engine.has(2)
    await wire.close()
    await replica.engine.has(0)
    assert set() == front.dispatcher.in_flight


async def test_choices_that_find_no_room_wait_for_one_another_beyond_the_wait_for_strangers(fronts: Fronts) -> None:
    front = await fronts.open(Limits(loading_wait=30, busy_wait=0.5, resume_wait=30), concurrency=1)
    replica = await front.a_replica()
    wire = await fronts.connect(front)
    wire.post(CHAT | {"n": 3})
    for _ in range(3):
        await replica.engine.has(1)
        await asyncio.sleep(0.7)
        replica.engine.step("x")
        replica.engine.finish_all()
    assert 3 == len((await wire.answer()).json()["choices"])


async def test_log_probabilities_reach_the_client_whole_and_streamed(fronts: Fronts) -> None:
    front = await fronts.open()
    replica = await front.a_replica()
    wire = await fronts.connect(front)
    for stream in (False, True):
        wire.post(CHAT | {"logprobs": True, "top_logprobs": 1, "stream": stream})
        await replica.engine.has(1)
        assert 1 == replica.engine.submits[-1].scores
        replica.engine.step("a", [SCORE])
        replica.engine.finish_all()
        answer = await wire.answer()
        choices = [c for event in answer.events[:-1] for c in event["choices"]] if stream else answer.json()["choices"]
        [found] = [choice["logprobs"] for choice in choices if choice["logprobs"]]
        assert ["a"] == [entry["token"] for entry in found["content"]]
        assert -0.5 == found["content"][0]["top_logprobs"][0]["logprob"]


async def test_a_call_reaches_the_client_and_the_engine_its_schema(fronts: Fronts) -> None:
    front = await fronts.open()
    replica = await front.a_replica()
    wire = await fronts.connect(front)
    wire.post(CHAT | {"tools": TOOLS, "tool_choice": "required"})
    await replica.engine.has(1)
    schema = json.loads(replica.engine.submits[-1].constraint.json_schema)
    assert "look" == schema["properties"]["name"]["const"]
    replica.engine.step('{"name": "look", "argum')
    replica.engine.step('ents": {}}')
    replica.engine.finish_all()
    [choice] = (await wire.answer()).json()["choices"]
    assert "tool_calls" == choice["finish_reason"]
    assert {"name": "look", "arguments": "{}"} == choice["message"]["tool_calls"][0]["function"]


async def test_calls_that_were_cut_reach_the_client_as_calls_streamed_too(fronts: Fronts) -> None:
    front = await fronts.open()
    replica = await front.a_replica()
    wire = await fronts.connect(front)
    for stream in (False, True):
        wire.post(CHAT | {"tools": TOOLS, "stream": stream})
        await replica.engine.has(1)
        replica.engine.step('{"name": "look", "arguments": {"a": 1}}\n{"name": "look", "argum')
        replica.engine.step('ents": {"b": [')
        for ticket in replica.engine.tickets.values():
            ticket.finish(Ending(pb.FINISH_LENGTH, 3, 2))
        replica.engine.tickets.clear()
        answer = await wire.answer()
        choices = [c for event in answer.events[:-1] for c in event["choices"]] if stream else answer.json()["choices"]
        assert "length" == choices[-1]["finish_reason"]
        said = [choice["delta" if stream else "message"] for choice in choices]
        assert {None} == {each.get("content") for each in said}
        arguments = ["", ""]
        for place, call in enumerate(call for each in said for call in each.get("tool_calls", ())):
            arguments[call.get("index", place)] += call["function"]["arguments"]
        assert ['{"a": 1}', '{"b": ['] == arguments


async def test_an_engine_that_knows_no_second_schema_is_not_asked_for_one(
    fronts: Fronts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft_dataplane.handshake.NEWEST_VERSION", limits.OR_JSON_VERSION - 1)
    front = await fronts.open()
    replica = await front.a_replica()
    wire = await fronts.connect(front)
    wire.post(CHAT | {"tools": TOOLS, "response_format": {"type": "json_object"}})
    answer = await wire.answer()
    assert 503 == answer.status
    assert "older release, without tools" in answer.json()["error"]["message"]
    assert [] == replica.engine.submits


async def test_an_older_engine_never_gets_what_it_would_pass_over(
    fronts: Fronts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft_dataplane.handshake.NEWEST_VERSION", limits.SHAPING_VERSION - 1)
    front = await fronts.open()
    replica = await front.a_replica()
    wire = await fronts.connect(front)
    wire.post(CHAT | {"logprobs": True})
    answer = await wire.answer()
    assert 503 == answer.status
    assert "older release, without logprobs" in answer.json()["error"]["message"]
    wire.post(CHAT)
    await replica.engine.has(1)
    replica.engine.finish_all()
    assert 200 == (await wire.answer()).status
    assert 1 == len(replica.engine.submits)
