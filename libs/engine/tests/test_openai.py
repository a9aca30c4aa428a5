"""The engine that asks an OpenAI server: what it sends, what it makes of answers, and what no server can do to it."""

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from weft_contracts.facts.arguments import ArgumentValue
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Ending, LoadFailed, RequestRefused, Ticket
from weft_engine import secrets
from weft_engine.adapters import load_engine, openai, openai_health
from weft_engine.adapters.openai import OpenAIServer
from weft_engine.launch import Launch

from .scripted_server import DONE, Connection, Reply, called, said, scripted

WAIT_S = 30.0
WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"const": "weather"}, "arguments": {"type": "object", "properties": {"at": {}}}},
    "required": ["name", "arguments"],
}


class Answered:
    """A ticket with all that was emitted into it."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.scores: list[pb.TokenScore] = []
        self.ticket = Ticket(1, self)
        self._over = asyncio.Event()
        self._some = asyncio.Event()

    def touch(self, ticket: Ticket) -> None:
        for text, _, scores in ticket.segments:
            self.texts.append(text)
            self.scores.extend(scores)
        ticket.segments = []
        self.thoughts += ticket.thoughts
        ticket.thoughts = []
        ticket.touched = False
        self._some.set()
        if ticket.ending is not None:
            self._over.set()

    @property
    def text(self) -> str:
        return "".join(self.texts)

    async def some(self) -> None:
        await asyncio.wait_for(self._some.wait(), WAIT_S)

    async def end(self) -> Ending:
        await asyncio.wait_for(self._over.wait(), WAIT_S)
        assert self.ticket.ending is not None
        return self.ticket.ending


def launch(url: str, **given: ArgumentValue) -> Launch:
    return Launch(
        replica="m-1",
        incarnation="i-1",
        node="n-1",
        revision_digest="d-1",
        engine="openai",
        context_tokens=64,
        concurrency=2,
        max_waiting=1,
        engine_args={"base_url": url, "model": "m", **given},
    )


@asynccontextmanager
async def engine_at(url: str, **given: ArgumentValue) -> AsyncGenerator[OpenAIServer]:
    engine = await load_engine(launch(url, **given))
    assert isinstance(engine, OpenAIServer)
    try:
        yield engine
    finally:
        await engine.close()


def ask(engine: OpenAIServer, **fields: Any) -> Answered:
    """Submit a chat, or what `fields` say."""
    answered = Answered()
    request = pb.Submit(**fields)
    prompt = pb.Prompt(chat=pb.Chat(messages=[pb.Message(role="user", content="a secret prompt")]))
    if request.WhichOneof("prompt") == "tokens":
        prompt = pb.Prompt(tokens=request.tokens)
    engine.submit(request, prompt, answered.ticket)
    return answered


async def answer_to(reply: Reply, **fields: Any) -> tuple[Answered, Ending]:
    async with scripted(reply) as server, engine_at(server.url) as engine:
        answered = ask(engine, **fields)
        return answered, await answered.end()


async def test_text_comes_as_the_server_says_it_and_its_usage_counts() -> None:
    heard = asyncio.Event()

    async def reply(request: Connection) -> None:
        await request.stream(said("War", role="assistant"))
        await asyncio.wait_for(heard.wait(), WAIT_S)  # what comes later can't have been waited for
        usage = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3}}
        await request.event(said("p"))
        await request.event(said(None, "stop"))
        await request.event({"choices": [], "usage": usage})
        await request.event(DONE)

    async with scripted(reply) as server, engine_at(server.url) as engine:
        answered = ask(engine, max_tokens=5, stop=["x"], sampling=pb.Sampling(temperature=0.7, seed=3, top_k=2))
        await answered.some()
        heard.set()
        ending = await answered.end()

    assert ("Warp", Ending(pb.FINISH_STOP, 9, 4, 3)) == (answered.text, ending)
    assert {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "a secret prompt"}],
        "max_tokens": 5,
        "stop": ["x"],
        "temperature": 0.7,
        "seed": 3,
        "top_k": 2,
    } == server.asked[0].body
    assert "POST /v1/chat/completions HTTP/1.1" == server.asked[0].line


async def test_a_server_that_does_not_stream_is_taken_whole() -> None:
    async def reply(request: Connection) -> None:
        choice = {"index": 0, "message": {"role": "assistant", "content": "Warp"}, "finish_reason": "length"}
        await request.answer({"choices": [choice], "usage": {"prompt_tokens": 2, "completion_tokens": 1}})

    answered, ending = await answer_to(reply)
    assert ("Warp", Ending(pb.FINISH_LENGTH, 2, 1)) == (answered.text, ending)


async def test_token_ids_go_to_the_completions_of_the_server() -> None:
    async def reply(request: Connection) -> None:
        await request.stream({"choices": [{"index": 0, "text": "Warp", "finish_reason": "stop"}]}, DONE)

    async with scripted(reply) as server, engine_at(server.url) as engine:
        answered = ask(engine, tokens=pb.TokenIds(ids=[1, 2]))
        await answered.end()
    assert ("Warp", [1, 2], "POST /v1/completions HTTP/1.1") == (
        answered.text,
        server.asked[0].body["prompt"],
        server.asked[0].line,
    )


async def test_calls_of_tools_come_in_wefts_form_and_the_text_before_them_goes() -> None:
    async def reply(request: Connection) -> None:
        await request.stream(
            said("I will look."),
            called(0, "weather", ""),
            called(0, None, '{"at": '),
            called(0, None, '"Bern"}'),
            called(1, "weather", ""),
            said(None, "tool_calls"),
            DONE,
        )

    async with scripted(reply) as server, engine_at(server.url) as engine:
        answered = ask(engine, constraint=pb.Constraint(json_schema=json.dumps(WEATHER), or_text=True, most=32))
        ending = await answered.end()
    assert pb.FINISH_STOP == ending.finish
    assert '{"name": "weather", "arguments": {"at": "Bern"}}\n{"name": "weather", "arguments": {}}' == answered.text
    body = server.asked[0].body
    function: dict[str, Any] = {"name": "weather", "parameters": {"type": "object", "properties": {"at": {}}}}
    assert [{"type": "function", "function": function}] == body["tools"]
    assert ("auto", True) == (body["tool_choice"], body["parallel_tool_calls"])


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_what_the_server_s_model_thought_is_told_apart_to_who_asks_for_it(name: str) -> None:
    async def reply(request: Connection) -> None:
        chunks = said(**{name: "hm"}), said(**{name: "m"}), said("so"), said(None, "stop")
        await request.stream(*chunks, DONE)

    async with scripted(reply) as server, engine_at(server.url) as engine:
        apart = ask(engine, parsed=True, template_kwargs='{"thinking": [true]}')
        await apart.end()
        older = ask(engine)
        await older.end()
    assert ("hmm", "so") == ("".join(apart.thoughts), apart.text)
    assert ("", "so") == ("".join(older.thoughts), older.text)
    assert {"thinking": [True]} == server.asked[0].body["chat_template_kwargs"]
    assert "chat_template_kwargs" not in server.asked[1].body


async def test_tools_that_the_prompt_alone_speaks_of_are_not_sent() -> None:
    async def reply(request: Connection) -> None:
        await request.stream(said("Fine."), said(None, "stop"), DONE)

    async with scripted(reply) as server, engine_at(server.url, tool_calls="prompt") as engine:
        answered = ask(engine, constraint=pb.Constraint(json_schema=json.dumps(WEATHER), or_text=True, most=32))
        await answered.end()
    assert "Fine." == answered.text
    assert not {"tools", "tool_choice", "response_format"} & server.asked[0].body.keys()


async def test_references_within_a_tools_parameters_lead_to_where_they_led() -> None:
    branch: dict[str, Any] = {
        "type": "object",
        "properties": {
            "name": {"const": "f"},
            "arguments": {"$defs": {"x": {}}, "$ref": "#/anyOf/1/properties/arguments/$defs/x"},
        },
        "required": ["name", "arguments"],
    }

    async def reply(request: Connection) -> None:
        await request.stream(said("Fine."), said(None, "stop"), DONE)

    async with scripted(reply) as server, engine_at(server.url) as engine:
        schema = json.dumps({"anyOf": [WEATHER, branch]})
        await ask(engine, constraint=pb.Constraint(json_schema=schema, or_text=True, most=32)).end()
    assert {"$ref": "#/$defs/x", "$defs": {"x": {}}} == server.asked[0].body["tools"][1]["function"]["parameters"]


async def test_a_schema_is_handed_on_and_an_answer_that_is_no_json_is_a_failure() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "boolean"}}}
    words = ['{"x": true}', "Certainly!"]

    async def reply(request: Connection) -> None:
        await request.stream(said(words.pop(0)), said(None, "stop"), DONE)

    async with scripted(reply) as server, engine_at(server.url) as engine:
        fits = ask(engine, constraint=pb.Constraint(json_schema=json.dumps(schema)))
        assert pb.FINISH_STOP == (await fits.end()).finish
        other = await ask(engine, constraint=pb.Constraint(json_schema='{"type":"object"}')).end()
    assert "was asked for JSON and answered otherwise" in other.error
    assert {"name": "answer", "schema": schema} == server.asked[0].body["response_format"]["json_schema"]
    assert {"type": "json_object"} == server.asked[1].body["response_format"]


async def test_log_probabilities_are_handed_on_and_their_absence_is_refused_by_name() -> None:
    likely = [{"token": "A", "logprob": -0.5, "bytes": [65]}, {"token": "B", "logprob": -1.0, "bytes": None}]
    scores: list[object] = [{"content": [{**likely[0], "top_logprobs": likely}]}, None]

    async def reply(request: Connection) -> None:
        chunk = said("A")
        chunk["choices"][0]["logprobs"] = scores.pop(0)
        await request.stream(chunk, said(None, "stop"), DONE)

    async with scripted(reply) as server, engine_at(server.url) as engine:
        given = ask(engine, scores=2)
        await given.end()
        lacking = await ask(engine, scores=2).end()
    (score,) = given.scores
    assert (b"A", -0.5, [b"A", b"B"]) == (score.token, score.logprob, [each.token for each in score.likeliest])
    assert (pb.FAULT_BAD_REQUEST, "scores") == (lacking.fault, lacking.field)


@pytest.mark.parametrize(
    ("status", "body", "fault", "field", "words"),
    [
        (
            400,
            {"error": {"message": "too hot", "param": "temperature"}},
            pb.FAULT_BAD_REQUEST,
            "temperature",
            "too hot",
        ),
        (
            422,
            {"detail": [{"loc": ["body", "n"], "msg": "bad", "input": "a secret prompt"}]},
            pb.FAULT_BAD_REQUEST,
            "",
            "body.n: bad",
        ),
        (400, {"error": {"message": "x", "code": "context_length_exceeded"}}, pb.FAULT_CONTEXT_EXCEEDED, "prompt", "x"),
        (
            400,
            {"error": {"type": "exceed_context_size_error", "n_prompt_tokens": 70, "n_ctx": 64}},
            pb.FAULT_CONTEXT_EXCEEDED,
            "prompt",
            "the prompt has 70 tokens, the context holds 64 with the answer",
        ),
        (429, {"error": {"message": "slow down"}}, pb.FAULT_BUSY, "", "slow down"),
        (500, {"error": "CUDA error"}, pb.FAULT_ENGINE, "", "CUDA error"),
        (502, b"<html>\x00\n  bad gateway", pb.FAULT_ENGINE, "", "<html> bad gateway"),
        (401, {"error": {"message": "who?"}}, pb.FAULT_ENGINE, "", "who?"),
        (404, {"error": {"message": "model is gone"}}, pb.FAULT_ENGINE, "", "model is gone"),
        (302, b"", pb.FAULT_ENGINE, "", "a redirect (302), which is not followed"),
    ],
)
async def test_a_servers_error_is_told_in_its_words_and_laid_where_it_belongs(
    status: int, body: object, fault: int, field: str, words: str
) -> None:
    async def reply(request: Connection) -> None:
        await request.answer(body, status, location=f"{server_url[0]}/elsewhere")

    server_url = [""]
    async with scripted(reply) as server, engine_at(server.url) as engine:
        server_url[0] = server.url
        ending = await ask(engine).end()
    assert (pb.FINISH_ERROR, fault, field) == (ending.finish, ending.fault, ending.field)
    assert words in ending.error
    assert fault == pb.FAULT_CONTEXT_EXCEEDED or "the server at 127.0.0.1:" in ending.error
    assert "secret" not in ending.error
    assert 1 == len(server.asked)


async def test_an_error_within_a_stream_ends_the_answer_with_it() -> None:
    async def reply(request: Connection) -> None:
        await request.stream(said("War"), {"error": {"message": "out of memory", "code": 500}})

    answered, ending = await answer_to(reply)
    assert ("War", pb.FAULT_ENGINE) == (answered.text, ending.fault)
    assert "out of memory" in ending.error


@pytest.mark.parametrize(
    ("said_by_it", "words"),
    [
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 9000, "sent a head of more than"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "speaks no HTTP/1.1"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: " + b"x" * 600_000,
            "an event of its answer has",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + b": hm\n" * 900_000, "sent more than"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
            + f"data: {json.dumps(said('lie' * 5000))}\n\n".encode() * 9,
            "sent more text than the tokens",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: " + b"[" * 100_000 + b"\n\n",
            "can't be read",
        ),
        (b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {"choices": 7}\n\n', "can't be read"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n", "packs its answers"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {}\n\n", "ended its answer before the end"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{", "closed the connection"),
    ],
)
async def test_a_server_that_lies_or_floods_ends_its_own_request_alone(said_by_it: bytes, words: str) -> None:
    async def reply(request: Connection) -> None:
        await request.send(said_by_it)

    async with scripted(reply) as server, engine_at(server.url) as engine:
        ending = await ask(engine).end()
        assert (pb.FINISH_ERROR, pb.FAULT_ENGINE) == (ending.finish, ending.fault)
        assert words in ending.error
        assert len(ending.error) < 700
        assert 0 == engine.load().running


async def test_a_cancel_closes_the_connection_and_frees_the_place() -> None:
    gone = asyncio.Event()

    async def reply(request: Connection) -> None:
        await request.stream(said("War"))
        await request.gone()
        gone.set()

    async with scripted(reply) as server, engine_at(server.url) as engine:
        running = ask(engine)
        await running.some()
        engine.cancel(running.ticket)
        assert pb.FINISH_CANCELLED == (await running.end()).finish
        await asyncio.wait_for(gone.wait(), WAIT_S)
        assert 0 == engine.load().running


async def test_what_has_no_place_waits_and_more_than_may_wait_is_busy() -> None:
    go_on = asyncio.Event()

    async def reply(request: Connection) -> None:
        await request.stream(said("War"))
        await asyncio.wait_for(go_on.wait(), WAIT_S)
        await request.event(said(None, "stop"))
        await request.event(DONE)

    async with scripted(reply) as server, engine_at(server.url) as engine:
        three = [ask(engine) for _ in range(3)]
        assert (2, 1) == engine.load()[:2]
        with pytest.raises(RequestRefused) as refused:
            ask(engine)
        assert pb.FAULT_BUSY == refused.value.fault
        go_on.set()
        assert {pb.FINISH_STOP} == {(await each.end()).finish for each in three}
        assert 3 == len(server.asked)


async def test_a_replica_sends_no_more_a_minute_than_it_was_told() -> None:
    async def reply(request: Connection) -> None:
        await request.stream(said("War"), said(None, "stop"), DONE)

    async with scripted(reply) as server, engine_at(server.url, requests_per_minute=2) as engine:
        for _ in range(2):
            await ask(engine).end()
        with pytest.raises(RequestRefused, match="at most 2 requests a minute") as refused:
            ask(engine)
        assert pb.FAULT_BUSY == refused.value.fault


async def test_a_server_that_asks_to_be_left_alone_is() -> None:
    async def reply(request: Connection) -> None:
        await request.answer({"error": {"message": "slow down"}}, 429, retry_after="50")

    async with scripted(reply) as server, engine_at(server.url) as engine:
        assert pb.FAULT_BUSY == (await ask(engine).end()).fault
        with pytest.raises(RequestRefused, match="asked to be left alone") as refused:
            ask(engine)
        assert (pb.FAULT_BUSY, 1) == (refused.value.fault, len(server.asked))


@pytest.mark.parametrize(
    ("says", "words"), [(False, "did not begin to answer within 1 s"), (True, "said nothing for 1 s")]
)
async def test_a_silent_server_is_given_up(says: bool, words: str) -> None:
    async def reply(request: Connection) -> None:
        if says:
            await request.stream(said("War"))
        await asyncio.sleep(WAIT_S)

    async with scripted(reply) as server, engine_at(server.url, first_byte_s=1, silence_s=1) as engine:
        ending = await ask(engine).end()
    assert (pb.FAULT_ENGINE, True) == (ending.fault, words in ending.error)


async def test_a_server_in_trouble_is_said_to_be_and_serves_when_it_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_health, "AGAIN_S", 0.1)

    async def reply(request: Connection) -> None:
        if server.well:
            await request.stream(said("War"), said(None, "stop"), DONE)
        else:
            await request.answer({"error": {"message": "CUDA out of memory"}}, 500)

    async with scripted(reply) as server, engine_at(server.url) as engine:
        server.well = False
        assert "CUDA out of memory" in (await ask(engine).end()).error
        async with asyncio.timeout(WAIT_S):
            while not engine.load().trouble:
                await asyncio.sleep(0.01)
        with pytest.raises(RequestRefused, match="CUDA out of memory"):
            ask(engine)
        server.well = True
        async with asyncio.timeout(WAIT_S):
            while engine.load().trouble:
                await asyncio.sleep(0.01)
        assert pb.FINISH_STOP == (await ask(engine).end()).finish


async def _never(request: Connection) -> None:
    raise AssertionError("nothing was to be asked")


@pytest.mark.parametrize(
    ("models", "well", "words"),
    [
        ({"data": [{"id": "other"}]}, True, "has no model 'm': it has other"),
        ({"data": [{"id": "m"}]}, False, "CUDA out of memory"),
        ({"models": []}, True, "can't be understood"),
    ],
)
async def test_a_server_without_the_model_or_without_an_answer_is_not_ready(
    models: object, well: bool, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_health, "START_S", 0.0)
    async with scripted(_never) as server:
        server.models, server.well = models, well
        with pytest.raises(LoadFailed) as failed:
            await load_engine(launch(server.url))
    assert words in failed.value.sentence
    assert failed.value.permanent == well
    # what may be another time is waited for, for as long as the replica is wanted
    assert failed.value.outside != well
    assert failed.value.sentence.startswith("it waits for its server: ") != well


async def test_a_tag_that_the_server_adds_is_no_other_model() -> None:
    async with scripted(_never) as server:
        server.models = {"data": [{"id": "m:latest", "owned_by": "library"}]}
        async with engine_at(server.url) as engine:
            assert ("openai", "library") == (engine.facts.name, engine.facts.version)


async def test_a_name_that_leads_to_a_link_local_address_is_refused_at_every_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def reply(request: Connection) -> None:
        await request.stream(said("War"), said(None, "stop"), DONE)

    async with scripted(reply) as server:
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        leads_to = ["127.0.0.1"]

        async def resolved(*_: object, **__: object) -> list[Any]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (leads_to[0], port))]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolved)
        async with engine_at(f"http://model.example:{port}/v1") as engine:
            assert pb.FINISH_STOP == (await ask(engine).end()).finish
            leads_to[0] = "169.254.169.254"
            engine._http.close()
            ending = await ask(engine).end()
            assert "169.254.169.254 is a link-local address" in ending.error
        with pytest.raises(LoadFailed, match="link-local") as failed:
            await load_engine(launch(f"http://model.example:{port}/v1"))
        assert failed.value.permanent


async def test_the_key_is_shown_to_the_server_and_stands_in_no_words(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def reply(request: Connection) -> None:
        await request.answer({"error": {"message": f"no {request.headers['authorization']}"}}, 401)

    values = {"cloud": "sk-very-private"}
    monkeypatch.setattr(openai, "resolved", values.__getitem__)
    caplog.set_level("DEBUG")
    async with scripted(reply) as server, engine_at(server.url, key="secret:cloud") as engine:
        ending = await ask(engine).end()
        values["cloud"] = "sk-replaced"
        await ask(engine).end()
    assert "Bearer sk-replaced" == server.asked[1].headers["authorization"]
    assert "Bearer sk-very-private" == server.asked[0].headers["authorization"]
    assert "sk-very-private" not in ending.error
    assert "sk-very-private" not in caplog.text + str([vars(record) for record in caplog.records])


async def test_without_its_secret_it_does_not_start() -> None:
    with pytest.raises(LoadFailed, match="the secret cloud") as failed:
        await load_engine(launch("http://127.0.0.1:1/v1", key="secret:cloud"))
    assert failed.value.permanent
    with pytest.raises(secrets.SecretMissing):
        secrets.resolved("cloud")


async def test_embeddings_and_ranks_come_in_the_order_of_what_was_given() -> None:
    async def reply(request: Connection) -> None:
        if "embeddings" in request.line:
            rows = [{"index": 1, "embedding": [0.0, 1.0]}, {"index": 0, "embedding": "AACAPwAAAAA="}]
            await request.answer({"data": rows[: len(request.body["input"])], "usage": {"prompt_tokens": 4}})
        else:
            ranks = [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]
            await request.answer({"results": ranks, "usage": {"prompt_tokens": 6}})

    async def reply_or_health(request: Connection) -> None:
        if request.body["input"] == ["Hi"] if "input" in request.body else False:
            await request.answer({"data": [{"index": 0, "embedding": [1.0]}]})
        else:
            await reply(request)

    async with scripted(reply_or_health) as server, engine_at(server.url, embeddings=True) as engine:
        made = await engine.embed(["a", "b"])
        assert ([b"\x00\x00\x80?\x00\x00\x00\x00", b"\x00\x00\x00\x00\x00\x00\x80?"], 4) == tuple(made)
        scores = await engine.rerank("q", ["a", "b"])
        assert ([pytest.approx(0.1), pytest.approx(0.9)], 6) == (list(scores.scores), scores.prompt_tokens)
        with pytest.raises(RequestRefused, match="it gave 1 vectors for 1 inputs"):
            await engine.embed(["a"])
        with pytest.raises(RequestRefused, match="it does not write"):
            ask(engine)


async def test_a_server_that_only_ranks_is_ready_by_a_rank() -> None:
    async def reply(request: Connection) -> None:
        if "rerank" in request.line:
            ranks = [{"index": place, "relevance_score": 0.5} for place in range(len(request.body["documents"]))]
            await request.answer({"results": ranks})
        else:
            await request.answer({"error": {"message": "this model makes no embeddings"}}, 400)

    async with scripted(reply) as server, engine_at(server.url, embeddings=True) as engine:
        assert [0.5, 0.5] == list((await engine.rerank("q", ["a", "b"])).scores)
        with pytest.raises(RequestRefused, match="this model makes no embeddings"):
            await engine.embed(["a"])


async def test_a_kept_connection_that_the_server_closed_is_no_failure() -> None:
    async def reply(request: Connection) -> None:
        choice = {"index": 0, "message": {"content": "Warp"}, "finish_reason": "stop"}
        await request.answer({"choices": [choice]})
        request.writer.close()

    async with scripted(reply) as server, engine_at(server.url) as engine:
        for _ in range(3):
            assert pb.FINISH_STOP == (await ask(engine).end()).finish
        assert 3 == len(server.asked)


async def test_an_interim_answer_is_passed_over_and_a_second_one_is_not_taken_for_the_next() -> None:
    choice = {"index": 0, "message": {"content": "Warp"}, "finish_reason": "stop"}
    body = json.dumps({"choices": [choice]}).encode()
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)

    async def reply(request: Connection) -> None:
        await request.send(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + whole + whole.replace(b"Warp", b"Weft"))

    async with scripted(reply) as server, engine_at(server.url) as engine:
        answers = [ask(engine) for _ in range(2)]
        for answered in answers:
            assert pb.FINISH_STOP == (await answered.end()).finish
        last = ask(engine)
        await last.end()
    assert ["Warp"] * 3 == [answered.text for answered in (*answers, last)]


async def test_over_tls_a_server_must_be_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def reply(request: Connection) -> None:
        await request.stream(said("War"), said(None, "stop"), DONE)

    monkeypatch.setattr(openai_health, "START_S", 0.0)
    certificate, key = certificate_for("localhost", tmp_path)
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(certificate, key)
    async with scripted(reply, own) as server:
        with pytest.raises(LoadFailed, match="its certificate is not trusted here"):
            await load_engine(launch(server.url))
        trusting = ssl.create_default_context(cafile=str(certificate))
        monkeypatch.setattr(ssl, "create_default_context", lambda: trusting)
        async with engine_at(server.url) as engine:
            answered = ask(engine)
            assert pb.FINISH_STOP == (await answered.end()).finish
            assert "War" == answered.text
        with pytest.raises(LoadFailed, match="not trusted here"):  # it is another's certificate
            await load_engine(launch(server.url.replace("localhost", "127.0.0.1")))


def certificate_for(host: str, folder: Path) -> tuple[Path, Path]:
    """A certificate that vouches for itself, and its key, as files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.now(tz=UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "server.crt", folder / "server.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    files[1].write_bytes(key.private_bytes(*private))
    return files
