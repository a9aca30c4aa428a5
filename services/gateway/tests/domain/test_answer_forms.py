"""Prepared templates give the same JSON as a library would."""

import json
from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.gen import session_pb2 as pb
from weft_gateway.domain.answers.choice_encoder import AnswerEnvelope, ChoiceEncoder, Usage
from weft_gateway.domain.answers.encoders import encoder_for, envelope_for
from weft_gateway.domain.inference_request import InferenceRequest, Message
from weft_gateway.domain.refused import Refused

CHAT = (Message("user", "hi"),)
SCORES = [
    pb.TokenScore(id=1, token=b"a", logprob=-0.5, likeliest=[pb.TokenScore(id=9, token=b"z", logprob=-0.25)]),
    pb.TokenScore(id=2, token=b"\xc3", logprob=-1.0),
]
NASTY = 'a "quoted" \\ name\n'


def events(data: bytes) -> list[Any]:
    parts = [part.removeprefix("data: ") for part in data.decode().split("\n\n") if part]
    return [part if part == "[DONE]" else json.loads(part) for part in parts]


def made(**fields: Any) -> tuple[AnswerEnvelope, ChoiceEncoder]:
    asked = InferenceRequest(model="m", **fields)
    envelope = envelope_for(asked, "i-1", 7, NASTY, "d")
    return envelope, encoder_for(asked, envelope, 3)


FORMS: list[dict[str, Any]] = [
    {"chat": CHAT},
    {"text": "p"},
    {"chat": CHAT, "scores": 1},
    {"text": "p", "scores": 1},
    {"chat": CHAT, "calls": ("look",)},
]


@given(st.sampled_from(FORMS), st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_text_and_any_name_make_a_valid_event(fields: dict[str, Any], text: str) -> None:
    text = text.lstrip("{") or "x"
    envelope, choice = made(include_usage=True, **fields)
    [event] = events(choice.event(text, SCORES))
    [one] = event["choices"]
    assert text == (one["delta"]["content"] if "chat" in fields else one["text"])
    assert (NASTY, 3, 7, None) == (event["model"], one["index"], event["created"], event["usage"])
    if not choice.more_than_text:
        assert choice.event(text, ()) == choice.before + msgspec.json.encode(text) + choice.after
    whole = json.loads(envelope.body([choice.whole(text, SCORES, "stop")], Usage(1, 2)))
    assert 3 == whole["usage"]["total_tokens"]
    assert event["id"] == whole["id"]
    [one] = whole["choices"]
    assert text == (one["message"]["content"] if "chat" in fields else one["text"])


def test_a_stream_ends_with_reason_usage_and_done() -> None:
    for fields in FORMS:
        envelope, choice = made(include_usage=True, **fields)
        *_, reason, usage, done = events(choice.closing("length") + envelope.ending(Usage(1, 2, 1)))
        assert "length" == reason["choices"][0]["finish_reason"]
        assert ([], 2) == (usage["choices"], usage["usage"]["completion_tokens"])
        assert "[DONE]" == done
        envelope, choice = made(**fields)
        assert 2 == len(events(choice.closing("stop") + envelope.ending(Usage(1, 2))))


def test_log_probabilities_have_openais_two_forms() -> None:
    _, chat = made(chat=CHAT, scores=1)
    [event] = events(chat.event("ab", SCORES))
    [first, second] = event["choices"][0]["logprobs"]["content"]
    assert ("a", [97], -0.5) == (first["token"], first["bytes"], first["logprob"])
    assert [{"token": "z", "bytes": [122], "logprob": -0.25}] == first["top_logprobs"]
    assert ("\ufffd", [0xC3]) == (second["token"], second["bytes"])

    _, text = made(text="p", scores=1)
    text.event("ab", SCORES)
    [event] = events(text.event("ab", SCORES))
    found = event["choices"][0]["logprobs"]
    assert (["a", "\ufffd"], [-0.5, -1.0], [2, 3]) == (found["tokens"], found["token_logprobs"], found["text_offset"])
    assert {"a": -0.5, "z": -0.25} == found["top_logprobs"][0]


def test_an_echo_is_the_beginning_of_the_answer() -> None:
    _, choice = made(text="once", echo=True)
    assert "once" == events(choice.opening())[0]["choices"][0]["text"]
    assert "once upon" == json.loads(choice.whole(" upon", (), "stop"))["text"]


CALL = '{"name": "look", "arguments": {"at": "a } \\" b", "in": [{}]}}'


@given(st.lists(st.integers(0, len(CALL)), max_size=6))
def test_a_call_is_read_from_any_pieces(cuts: list[int]) -> None:
    _, choice = made(chat=CHAT, calls=("look",))
    borders = [0, *sorted(cuts), len(CALL)]
    pieces = [CALL[a:b] for a, b in pairwise(borders)]
    stream = b"".join([choice.event(piece, ()) for piece in pieces])
    deltas = [event["choices"][0]["delta"] for event in events(choice.opening() + stream)]
    assert {"role": "assistant", "content": None} == deltas[0]
    calls = [delta["tool_calls"][0] for delta in deltas[1:]]
    assert "look" == calls[0]["function"]["name"]
    assert calls[0]["id"].startswith("call-")
    assert {"at": 'a } " b', "in": [{}]} == json.loads("".join(call["function"]["arguments"] for call in calls))
    assert "tool_calls" == events(choice.closing("stop"))[-1]["choices"][0]["finish_reason"]

    whole = json.loads(choice.whole(CALL, (), "stop"))
    assert ("tool_calls", None) == (whole["finish_reason"], whole["message"]["content"])
    assert {"at": 'a } " b', "in": [{}]} == json.loads(whole["message"]["tool_calls"][0]["function"]["arguments"])


def test_an_answer_begins_anew_elsewhere_whatever_was_read_before() -> None:
    _, choice = made(chat=CHAT, calls=("look",))
    choice.event(CALL[:-9], ())
    choice.restart()
    assert "hello" == events(choice.event("hello", ()))[0]["choices"][0]["delta"]["content"]


def test_a_broken_stream_says_so() -> None:
    envelope, _ = made(chat=CHAT)
    error, done = events(envelope.broken(Refused(503, "gone", code="x")))
    assert {"error": {"message": "gone", "type": "server_error", "param": None, "code": "x"}} == error
    assert "[DONE]" == done


def test_a_chat_begins_with_who_speaks_and_a_text_with_nothing() -> None:
    _, chat = made(chat=CHAT)
    [event] = events(chat.opening())
    assert {"role": "assistant", "content": ""} == event["choices"][0]["delta"]
    _, text = made(text="once")
    assert b"" == text.opening()


def test_what_the_model_thought_stands_beside_what_it_says_streamed_and_whole() -> None:
    call = '{"name": "look", "arguments": {}}'
    cases: list[tuple[dict[str, Any], str]] = [({}, "so"), ({"calls": ("look",)}, call), ({"scores": 1}, "so")]
    for fields, text in cases:
        _, choice = made(chat=CHAT, **fields)
        said = choice.thought(NASTY) + choice.thought(" on") + choice.event(text, ())
        deltas = [event["choices"][0]["delta"] for event in events(choice.opening() + said + choice.closing("stop"))]
        assert [NASTY, " on"] == [delta["reasoning_content"] for delta in deltas if "reasoning_content" in delta]

        _, choice = made(chat=CHAT, **fields)
        choice.thought("of another replica")
        choice.restart()
        assert "reasoning_content" not in json.loads(choice.whole(text, (), "stop"))["message"]
        choice.thought(NASTY)
        message = json.loads(choice.whole(text, (), "stop"))["message"]
        assert (NASTY, "calls" in fields) == (message["reasoning_content"], "tool_calls" in message)
