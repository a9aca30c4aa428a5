"""`/v1/responses` over a real socket, byte by byte and with the official client: as a chat, in its own dialect."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import openai
import pytest
import pytest_asyncio
from pydantic import BaseModel
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Ending
from weft_gateway.inbound.inference.limits import Limits

from .conftest import Answer, Engine, Front, Fronts

PATH = "/v1/responses"
WHOLE: dict[str, Any] = {"model": "sim", "input": "hi", "temperature": 0}
STREAM = WHOLE | {"stream": True}
TOOL: Any = {
    "type": "function",
    "name": "look",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": False,
}
CALL = '{"name": "look", "arguments": {"city": "Paris"}}'


def events(answer: Answer) -> list[Any]:
    parts = answer.body.decode().split("\n\n")
    assert "" == parts.pop()
    return [json.loads(part.partition("\ndata: ")[2]) for part in parts]


async def says(engine: Engine, *pieces: str) -> None:
    """The engine answers its one request."""
    await engine.has(1)
    for piece in pieces:
        engine.step(piece)
    engine.finish_all()


@pytest_asyncio.fixture
async def front(fronts: Fronts) -> Front:
    return await fronts.open()


@pytest_asyncio.fixture
async def client(front: Front) -> AsyncGenerator[openai.AsyncOpenAI]:
    url = f"http://127.0.0.1:{front.port}/v1"
    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=30) as client:
        yield client


async def test_a_stream_carries_each_step_in_the_apis_order_and_ends_without_done(fronts: Fronts, front: Front) -> None:
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    wire.post(STREAM, path=PATH, headers={"x-request-id": "abc"})
    await engine.has(1)
    engine.step("he")
    status, headers = await wire.head()
    first = await wire.chunk()
    assert (200, "text/event-stream; charset=utf-8", "abc") == (
        status,
        headers["content-type"],
        headers["x-request-id"],
    )
    assert first.startswith(b'event: response.created\ndata: {"type":"response.created","response":{"id":"resp_')
    assert b'"delta":"he"' in first
    engine.step("llo")
    assert b'"delta":"llo","logprobs":[],"sequence_number":5}\n\n' in await wire.chunk()
    engine.finish_all()
    last = await wire.chunk()
    assert b"[DONE]" not in last
    assert b"event: response.completed\n" in last
    assert b"" == await wire.chunk()
    # and the connection serves the next request
    wire.post(WHOLE, path=PATH)
    await says(engine, "x")
    assert "completed" == (await wire.answer()).json()["status"]


async def test_a_whole_response_has_its_usage_and_is_counted_as_a_chat(fronts: Fronts, front: Front) -> None:
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    wire.post(WHOLE | {"instructions": "be kind", "max_output_tokens": 9, "metadata": {"a": "b"}}, path=PATH)
    await says(engine, "hello")
    response = (await wire.answer()).json()
    assert ("response", "sim", False) == (response["object"], response["model"], response["store"])
    assert "hello" == response["output"][0]["content"][0]["text"]
    assert (3, 2, 5) == tuple(response["usage"][f"{name}_tokens"] for name in ("input", "output", "total"))
    submit = engine.submits[-1]
    assert [("system", "be kind"), ("user", "hi")] == [(m.role, m.content) for m in submit.chat.messages]
    assert 9 == submit.max_tokens
    labels = {"gen_ai_operation_name": "chat", "gen_ai_request_model": "sim", "error_type": ""}
    assert 1 == front.registry.get_sample_value("gen_ai_server_request_duration_seconds_count", labels)


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"store": True}, 400, "store"),
        ({"previous_response_id": "resp_1"}, 400, "previous_response_id"),
        ({"model": "none"}, 404, "model"),
        ({"max_output_tokens": 1 << 20}, 400, "max_output_tokens"),
    ],
)
async def test_a_refusal_is_openais_error_object(
    fronts: Fronts, front: Front, fields: dict[str, Any], status: int, param: str
) -> None:
    await front.a_replica()
    wire = await fronts.connect(front)
    wire.post(STREAM | fields, path=PATH)
    answer = await wire.answer()
    assert status == answer.status
    assert (param, True) == (answer.json()["error"]["param"], f"`{param}`" in answer.body.decode() or status == 404)
    # each is counted
    assert 1 == front.registry.get_sample_value(
        "weft_gateway_refused_total", {"status": str(status), "route": "response"}
    )


async def test_the_apis_document_has_the_route_with_its_body(fronts: Fronts, front: Front) -> None:
    wire = await fronts.connect(front)
    wire.send(b"GET /openapi.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    document = (await wire.answer()).json()
    body = document["paths"][PATH]["post"]["requestBody"]["content"]["application/json"]
    assert "#/components/schemas/ResponseBody" == body["schema"]["$ref"]
    assert {"model", "input"} == set(document["components"]["schemas"]["ResponseBody"]["required"])
    # and nothing says that responses are kept
    assert [PATH] == [path for path in document["paths"] if path.startswith(PATH)]


async def test_what_was_never_stored_can_not_be_fetched(fronts: Fronts, front: Front) -> None:
    wire = await fronts.connect(front)
    for line in ("GET /v1/responses/resp_1", "DELETE /v1/responses/resp_1", "POST /v1/responses/resp_1/cancel"):
        wire.send(f"{line} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n".encode())
        answer = await wire.answer()
        assert (404, "not_stored") == (answer.status, answer.json()["error"]["code"])


async def test_a_key_is_needed_as_for_a_chat_and_a_body_is_bounded(fronts: Fronts) -> None:
    front = await fronts.open(policy="keys", max_body=2000)
    wire = await fronts.connect(front)
    wire.post(WHOLE, path=PATH)
    assert (401, "invalid_api_key") == ((answer := await wire.answer()).status, answer.json()["error"]["code"])
    small = await fronts.open(max_body=2000)
    wire = await fronts.connect(small)
    wire.post(WHOLE | {"input": "x" * 3000}, path=PATH)
    assert 413 == (await wire.answer()).status


async def test_a_broken_greedy_stream_goes_on_at_another_replica_with_its_count(fronts: Fronts, front: Front) -> None:
    first, second = await front.a_replica(1), await front.a_replica(2)
    wire = await fronts.connect(front)
    wire.post(STREAM, path=PATH)
    async with asyncio.timeout(30):
        while not first.engine.tickets and not second.engine.tickets:
            await asyncio.sleep(0.01)
    ran, other = (first, second) if first.engine.tickets else (second, first)
    ran.engine.step("one ")
    await wire.head()
    head = await wire.chunk()
    await ran.die()
    await other.engine.has(1)
    assert "one " == other.engine.submits[-1].resume.text_sent
    other.engine.step("two")
    other.engine.finish_all()
    rest = b""
    while part := await wire.chunk():
        rest += part
    found = events(Answer(200, {}, head + rest))
    assert list(range(len(found))) == [event["sequence_number"] for event in found]
    assert "one two" == found[-1]["response"]["output"][0]["content"][0]["text"]


async def test_a_draw_that_breaks_ends_with_the_error_and_the_failed_response(
    front: Front, client: openai.AsyncOpenAI
) -> None:
    replica = await front.a_replica()
    create: Any = client.responses.create
    asked = asyncio.create_task(create(**STREAM | {"temperature": 1}))
    await replica.engine.has(1)
    replica.engine.step("one")
    stream = await asked
    seen = [(await anext(stream)).type for _ in range(5)]
    assert "response.output_text.delta" == seen[-1]
    replica.engine.tickets.popitem()[1].fail(pb.FAULT_ENGINE, "out of luck")
    with pytest.raises(openai.APIError, match="out of luck"):
        await anext(stream)


async def test_a_prompt_beyond_the_context_is_the_clients_own_error(front: Front, client: openai.AsyncOpenAI) -> None:
    engine = (await front.a_replica()).engine
    asked = asyncio.create_task(client.responses.create(model="sim", input="hi", stream=True))
    await engine.has(1)
    engine.tickets[1].finish(Ending(pb.FINISH_ERROR, fault=pb.FAULT_CONTEXT_EXCEEDED, error="too long"))
    with pytest.raises(openai.BadRequestError, match="Too long") as refused:
        await asked
    assert "context_length_exceeded" == refused.value.code


async def test_who_leaves_is_cancelled_and_who_waits_is_told(fronts: Fronts) -> None:
    front = await fronts.open(Limits(loading_wait=0.2))
    front.a_loading_replica(1)
    wire = await fronts.connect(front)
    wire.post(STREAM, path=PATH)
    answer = await wire.answer()
    assert (503, True) == (answer.status, "retry-after" in answer.headers)

    engine = (await front.a_replica(2)).engine
    wire = await fronts.connect(front)
    wire.post(STREAM, path=PATH)
    await engine.has(1)
    await wire.close()
    async with asyncio.timeout(30):
        while not engine.cancelled:
            await asyncio.sleep(0.01)


class Place(BaseModel):
    city: str


async def test_the_official_client_creates_streams_and_parses(front: Front, client: openai.AsyncOpenAI) -> None:
    engine = (await front.a_replica()).engine
    saying = asyncio.create_task(says(engine, "hel", "lo"))
    response = await client.responses.create(model="sim", input="hi")
    await saying
    assert ("hello", "completed") == (response.output_text, response.status)
    assert response.usage is not None
    assert 5 == response.usage.total_tokens

    saying = asyncio.create_task(says(engine, "hel", "lo"))
    async with client.responses.stream(model="sim", input="hi") as stream:
        deltas = [event.delta async for event in stream if event.type == "response.output_text.delta"]
        final = await stream.get_final_response()
    await saying
    assert ("hello", "hello") == ("".join(deltas), final.output_text)

    saying = asyncio.create_task(says(engine, '{"city": ', '"Paris"}'))
    parsed = await client.responses.parse(model="sim", input="hi", text_format=Place)
    await saying
    assert Place(city="Paris") == parsed.output_parsed
    assert ["city"] == json.loads(engine.submits[-1].constraint.json_schema)["required"]


async def test_the_official_client_calls_a_tool_and_sends_what_it_gave(
    front: Front, client: openai.AsyncOpenAI
) -> None:
    engine = (await front.a_replica()).engine
    create: Any = client.responses.create
    history: list[Any] = [{"role": "user", "content": "Where?"}]
    saying = asyncio.create_task(says(engine, CALL[:20], CALL[20:]))
    async with client.responses.stream(model="sim", input=history, tools=[TOOL]) as stream:
        response = await stream.get_final_response()
    await saying
    call: Any = response.output[0]
    assert "function_call" == call.type
    assert ("look", {"city": "Paris"}) == (call.name, json.loads(call.arguments))
    # as the client's own documents have it: all items of the answer, then what the call gave
    history += [*response.output, {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
    saying = asyncio.create_task(says(engine, "It is sunny."))
    answer = await create(model="sim", input=history, tools=[TOOL])
    await saying
    assert "It is sunny." == answer.output_text
    # and a third turn has the second one's message among its items
    saying = asyncio.create_task(says(engine, "Yes."))
    third = await create(model="sim", input=[*history, *answer.output, {"role": "user", "content": "Sure?"}])
    await saying
    assert "Yes." == third.output_text
    assert [
        ("user", "Where?"),
        ("assistant", CALL),
        ("user", "look returned: sunny"),
        ("assistant", "It is sunny."),
        ("user", "Sure?"),
    ] == [(message.role, message.content) for message in engine.submits[-1].chat.messages]
