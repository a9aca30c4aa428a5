"""What shapes an answer: constraint, bias, penalty, scores. llama.cpp honours them, the simulated engine refuses."""

import json
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import SessionClient

StartHost = Callable[..., AbstractAsyncContextManager[Any]]
Ask = Callable[..., Any]
GREEDY = pb.Sampling(temperature=0)
HOTTER = [pb.Sampling(temperature=5, top_k=0, top_p=1, min_p=0, seed=seed) for seed in range(30)]
HOT = HOTTER[:8]
needs_llamacpp = pytest.mark.skipif(find_spec("xllamacpp") is None, reason="llama.cpp is not installed")


@pytest.fixture
async def client(start: StartHost, random_model: Path) -> AsyncGenerator[SessionClient, None]:
    async with start(engine="llama.cpp", model_path=str(random_model)) as host:
        await host.phase("ready")
        client = await host.open()
        yield client
        await client.close()


SCHEMAS: list[dict[str, Any]] = [
    {
        "type": "object",
        "properties": {
            "colour": {"enum": ["rot", "grün", 'a "b" \\ c']},
            "count": {"type": "integer", "minimum": -3, "maximum": 12},
            "when": {"type": "string", "format": "date-time"},
            "tags": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3},
            "maybe": {"type": ["string", "null"], "maxLength": 5},
        },
        "required": ["colour", "count", "when", "tags"],
    },
    {
        "$defs": {
            "leaf": {"type": "object", "properties": {"kind": {"const": "leaf"}}, "required": ["kind"]},
            "pair": {
                "type": "object",
                "properties": {"kind": {"const": "pair"}, "both": {"prefixItems": [{"type": "null"}, {"const": 7}]}},
                "required": ["kind", "both"],
            },
        },
        "oneOf": [{"$ref": "#/$defs/leaf"}, {"$ref": "#/$defs/pair"}],
    },
    {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}, "minItems": 1, "maxItems": 3},
]


def fits(value: Any, which: int) -> bool:
    match which:
        case 0:
            return (
                list(value)[:4] == ["colour", "count", "when", "tags"]
                and value["colour"] in SCHEMAS[0]["properties"]["colour"]["enum"]
                and -3 <= value["count"] <= 12
                and value["when"].endswith("Z")
                and 2 <= len(value["tags"]) <= 3
                and all(isinstance(tag, bool) for tag in value["tags"])
                and len(value.get("maybe") or "") <= 5
            )
        case 1:
            return value in ({"kind": "leaf"}, {"kind": "pair", "both": [None, 7]})
        case _:
            return 1 <= len(value) <= 3 and all(0 <= number <= 1 for number in value)


@needs_llamacpp
async def test_every_complete_answer_fits_its_schema_however_wild_the_draw(client: SessionClient, ask: Ask) -> None:
    for which, schema in enumerate(SCHEMAS):
        constraint = pb.Constraint(json_schema=json.dumps(schema))
        complete = 0
        for sampling in [GREEDY, *HOT]:
            answer = ask(client, "give", max_tokens=300, sampling=sampling, constraint=constraint)
            if (await answer.end()).finish == pb.FINISH_STOP:
                complete += 1
                assert fits(json.loads(answer.text), which), answer.text
        assert complete >= 6


@needs_llamacpp
async def test_a_call_or_text_is_either_the_one_or_does_not_begin_as_it(client: SessionClient, ask: Ask) -> None:
    constraint = pb.Constraint(json_schema=json.dumps(SCHEMAS[1]), or_text=True)
    for sampling in HOT:
        answer = ask(client, "give", max_tokens=60, sampling=sampling, constraint=constraint)
        last = await answer.end()
        if answer.text.startswith("{") and last.finish == pb.FINISH_STOP:
            assert fits(json.loads(answer.text), 1)
        else:
            assert not answer.text.startswith(" ")


GUIDED: list[tuple[dict[str, Any], str]] = [
    ({"type": "string", "pattern": "^[A-Z]{2}-\\d{3}$"}, '"[A-Z]{2}-[0-9]{3}"'),
    ({"type": "integer", "multipleOf": 7, "minimum": 20, "maximum": 30}, "21|28"),
    ({"type": "string", "format": "ipv6", "title": "x"}, '"[0-9a-fA-F:.]+"'),
    (
        {
            "oneOf": [
                {"type": "array", "items": {"type": "string", "pattern": "^a?b$"}, "maxItems": 2},
                {"type": "null"},
            ],
            "x-guidance": {"lenient": True, "whitespace_flexible": True},
        },
        r'null|\[("a?b"(, "a?b")?)?\]',
    ),
]


@needs_llamacpp
async def test_patterns_and_multiples_are_kept_however_wild_the_draw(client: SessionClient, ask: Ask) -> None:
    for schema, form in GUIDED:
        for or_text, sampling in [(False, GREEDY), *((False, each) for each in HOT[:4]), (True, HOT[4])]:
            constraint = pb.Constraint(json_schema=json.dumps(schema), or_text=or_text, most=2 if or_text else 0)
            answer = ask(client, "give", max_tokens=80, sampling=sampling, constraint=constraint)
            last = await answer.end()
            if last.finish == pb.FINISH_STOP and not or_text:
                assert re.fullmatch(form, answer.text), answer.text
            assert last.finish in (pb.FINISH_STOP, pb.FINISH_LENGTH), last.error


@needs_llamacpp
async def test_several_values_come_on_lines_of_their_own_and_a_value_of_the_other_schema_alone(
    client: SessionClient, ask: Ask
) -> None:
    constraint = pb.Constraint(json_schema='{"const":{"a":1}}', most=3, or_json='{"enum":[[],[2]]}')
    seen: set[str] = set()
    for sampling in [
        *HOT,
        *[pb.Sampling(temperature=5, top_k=0, top_p=1, min_p=0, seed=seed) for seed in range(9, 30)],
    ]:
        answer = ask(client, "give", max_tokens=100, sampling=sampling, constraint=constraint)
        assert pb.FINISH_STOP == (await answer.end()).finish
        seen.add(answer.text)
    one = '{"a": 1}'
    assert {one, f"{one}\n{one}", f"{one}\n{one}\n{one}", "[]", "[2]"} >= seen
    assert any("\n" in text for text in seen)
    assert any("[" in text for text in seen)


@needs_llamacpp
async def test_stops_act_on_the_text_beside_a_schema_and_not_on_its_json(client: SessionClient, ask: Ask) -> None:
    letters = list("abcdefghijklmnopqrstuvwxyz")
    constraint = pb.Constraint(json_schema=json.dumps({"const": {"it": "".join(letters)}}), or_text=True)
    for towards_json in (100, -100):
        bias = [pb.TokenBias(id=3 + ord("{"), value=towards_json)]
        answer = ask(client, "x", max_tokens=80, sampling=HOT[0], constraint=constraint, stop=letters, bias=bias)
        await answer.end()
        assert (towards_json > 0) == answer.text.startswith("{")
        assert (towards_json > 0) == any(letter in answer.text for letter in letters)


@needs_llamacpp
async def test_a_schema_that_cannot_be_promised_is_a_bad_request_and_hurts_nobody(
    client: SessionClient, ask: Ask
) -> None:
    constraint = pb.Constraint(json_schema='{"type":"array","uniqueItems":true}')
    last = await ask(client, "x", constraint=constraint).end()
    assert (pb.FINISH_ERROR, pb.FAULT_BAD_REQUEST) == (last.finish, last.fault)
    assert "'uniqueItems'" in last.error
    assert "constraint" == last.field
    assert (
        pb.FINISH_LENGTH
        == (await ask(client, "next", max_tokens=2, sampling=pb.Sampling(ignore_end=True)).end()).finish
    )


@needs_llamacpp
async def test_scores_stand_beside_each_token_and_fall(client: SessionClient, ask: Ask) -> None:
    plain = ask(client, "hello", max_tokens=6, sampling=GREEDY)
    await plain.end()
    scored = ask(client, "hello", max_tokens=6, sampling=GREEDY, scores=3)
    await scored.end()
    scores = [score for output in scored.outputs for score in output.scores]
    assert plain.text == scored.text
    assert plain.ids == [score.id for score in scores]
    assert plain.text.encode() == b"".join(score.token for score in scores)
    for score in scores:
        chances = [other.logprob for other in score.likeliest]
        assert 3 == len(chances)
        assert sorted(chances, reverse=True) == chances
        assert (score.id, score.logprob) == (score.likeliest[0].id, score.likeliest[0].logprob)
    bare = ask(client, "hello", max_tokens=2, sampling=GREEDY, scores=0)
    await bare.end()
    assert [] == [other for output in bare.outputs for score in output.scores for other in score.likeliest]
    assert [] == [score for output in plain.outputs for score in output.scores]


@needs_llamacpp
async def test_a_bias_decides_a_draw_and_an_unknown_token_is_refused(client: SessionClient, ask: Ask) -> None:
    pushed = ask(client, "x", max_tokens=4, sampling=GREEDY, bias=[pb.TokenBias(id=40, value=100)])
    await pushed.end()
    assert [40] * 4 == pushed.ids
    last = await ask(client, "x", bias=[pb.TokenBias(id=10**6, value=1)]).end()
    assert pb.FAULT_BAD_REQUEST == last.fault
    assert ("token 1000000" in last.error, last.field) == (True, "bias")


@needs_llamacpp
async def test_a_penalty_keeps_tokens_from_coming_again(client: SessionClient, ask: Ask) -> None:
    bias = [pb.TokenBias(id=token, value=30) for token in (40, 41, 42)]
    answer = ask(client, "x", max_tokens=12, sampling=pb.Sampling(temperature=0, frequency_penalty=2), bias=bias)
    await answer.end()
    assert {40, 41, 42} <= set(answer.ids)


async def test_the_simulated_engine_refuses_by_name_what_it_does_not_simulate(start: StartHost, ask: Ask) -> None:
    async with start(engine="simulated") as host:
        await host.phase("ready")
        client = await host.open()
        asked: list[tuple[str, dict[str, Any]]] = [
            ("top_p", {"sampling": pb.Sampling(top_p=0.5)}),
            ("frequency_penalty", {"sampling": pb.Sampling(frequency_penalty=1)}),
            ("logprobs", {"scores": 0}),
            ("logit_bias", {"bias": [pb.TokenBias(id=1, value=1)]}),
            ("response_format", {"constraint": pb.Constraint(json_schema="{}")}),
        ]
        for field, fields in asked:
            last = await ask(client, "x", **fields).end()
            assert pb.FAULT_BAD_REQUEST == last.fault
            assert f"`{field}`" in last.error
        await client.close()
