"""A response's events: in the published order and form, counted without a gap, and telling what the response holds."""

import json
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter
from weft_contracts.gen import session_pb2 as pb
from weft_gateway.domain.answers.choice_encoder import AnswerEnvelope, ChoiceEncoder, FinishReason, Usage
from weft_gateway.domain.answers.encoders import encoder_for, envelope_for
from weft_gateway.domain.openai.responses import LOGPROBS, check_response
from weft_gateway.domain.refused import Refused

NASTY = 'a "quoted" \\ name\n'
SCORES = [pb.TokenScore(id=1, token=b"a", logprob=-0.5, likeliest=[pb.TokenScore(id=9, token=b"z", logprob=-0.25)])]
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": name, "parameters": {"type": "object"}, "strict": True} for name in ("look", "listen")
]
CALL = '{"name": "look", "arguments": {"at": "a } \\" b", "in": [{}]}}'
OTHER = '{"name": "listen", "arguments": {}}'
ARGUMENTS: dict[str, Any] = {"at": 'a } " b', "in": [{}]}


def made(**fields: Any) -> tuple[AnswerEnvelope, ChoiceEncoder]:
    asked = check_response(json.dumps({"model": "m", "input": "hi", **fields}).encode())
    envelope = envelope_for(asked, "gw-1", 7, NASTY, "d")
    return envelope, encoder_for(asked, envelope, 0)


def events(data: bytes) -> list[Any]:
    """The events of a stream, each as its `event:` line says."""
    found: list[Any] = []
    for part in data.decode().split("\n\n")[:-1]:
        kind, _, text = part.partition("\n")
        event = json.loads(text.removeprefix("data: "))
        assert f"event: {event['type']}" == kind
        found.append(event)
    return found


def streamed(pieces: list[str], finish: FinishReason = "stop", **fields: Any) -> list[Any]:
    """All events of an answer that comes in pieces."""
    envelope, choice = made(**fields)
    said = b"".join([choice.event(piece, ()) for piece in pieces])
    return events(choice.opening() + said + choice.closing(finish) + envelope.ending(Usage(3, 2, 1)))


def whole(text: str, finish: FinishReason = "stop", **fields: Any) -> Any:
    envelope, choice = made(**fields)
    return json.loads(envelope.body([choice.whole(text, (), finish)], Usage(3, 2, 1)))


def kinds(found: list[Any]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in found]


def check_told(found: list[Any]) -> Any:
    """Numbers, ids and places agree, and the last event holds what the ones before it told. Returns the response."""
    assert list(range(len(found))) == [event["sequence_number"] for event in found]
    response = found[-1]["response"]
    assert {response["id"]} == {event["response"]["id"] for event in found if "response" in event}
    added = [event["item"] for event in found if event["type"] == "response.output_item.added"]
    done = [event["item"] for event in found if event["type"] == "response.output_item.done"]
    assert (response["output"], [item["id"] for item in added]) == (done, [item["id"] for item in done])
    assert len(added) == len({item["id"] for item in added})
    for event in found:
        if "item_id" in event:
            assert done[event["output_index"]]["id"] == event["item_id"]
    for place, item in enumerate(done):
        deltas = "".join(e["delta"] for e in found if e["type"].endswith(".delta") and e["output_index"] == place)
        assert deltas == (item["arguments"] if item["type"] == "function_call" else item["content"][0]["text"])
    return response


def test_every_event_and_the_response_are_of_the_published_form() -> None:
    published: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    envelope, choice = made()
    broken = events(choice.opening() + envelope.broken(Refused(503, "gone")))
    for event in [*streamed(["hi"]), *streamed(["hi"], "length"), *streamed([CALL], tools=TOOLS), *broken]:
        published.validate_python(event)
    for response in (whole("hi"), whole("hi", "length"), whole(f"{CALL}\n{OTHER}", tools=TOOLS)):
        Response.model_validate(response)


@settings(max_examples=30)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=4))
def test_any_text_in_any_pieces_is_told_and_held_whole(pieces: list[str]) -> None:
    found = streamed(pieces)
    assert [
        *("created", "in_progress", "output_item.added", "content_part.added"),
        *["output_text.delta"] * len(pieces),
        *("output_text.done", "content_part.done", "output_item.done", "completed"),
    ] == kinds(found)
    response = check_told(found)
    [item] = response["output"]
    assert ("".join(pieces), "completed") == (item["content"][0]["text"], item["status"])
    assert (NASTY, "completed", 7) == (response["model"], response["status"], response["created_at"])
    assert ("in_progress", [], None) == (
        found[0]["response"]["status"],
        found[0]["response"]["output"],
        found[0]["response"]["usage"],
    )
    assert response == whole("".join(pieces))


def test_usage_is_counted_in_the_apis_own_words() -> None:
    assert {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 5,
    } == whole("hi")["usage"]


def test_an_answer_that_reached_its_budget_is_incomplete_and_says_why() -> None:
    found = streamed(["hal"], "length")
    assert "incomplete" == kinds(found)[-1]
    response = check_told(found)
    assert ("incomplete", {"reason": "max_output_tokens"}) == (response["status"], response["incomplete_details"])
    assert "incomplete" == response["output"][0]["status"]
    assert response == whole("hal", "length")
    assert whole("done")["incomplete_details"] is None


def test_an_empty_answer_is_an_empty_message() -> None:
    response = check_told(streamed([]))
    assert [""] == [part["text"] for part in response["output"][0]["content"]]
    assert response == whole("")


@settings(max_examples=30)
@given(st.lists(st.integers(0, len(CALL) + 1 + len(OTHER)), max_size=6))
def test_calls_are_items_of_their_own_from_any_pieces(cuts: list[int]) -> None:
    text = f"{CALL}\n{OTHER}"
    borders = [0, *sorted(cuts), len(text)]
    found = streamed([text[a:b] for a, b in pairwise(borders)], tools=TOOLS)
    response = check_told(found)
    one, two = response["output"]
    assert ("look", ARGUMENTS, "completed") == (one["name"], json.loads(one["arguments"]), one["status"])
    assert ("listen", {}, "completed") == (two["name"], json.loads(two["arguments"]), two["status"])
    assert one["call_id"] != two["call_id"]
    without_deltas = [kind for kind in kinds(found) if not kind.endswith(".delta")]
    call = ["output_item.added", "function_call_arguments.done", "output_item.done"]
    assert ["created", "in_progress", *call, *call, "completed"] == without_deltas
    assert response == whole(text, tools=TOOLS)


def test_a_call_that_was_cut_is_an_incomplete_item_and_never_text() -> None:
    for cut in (CALL[:-9], '{"name": "lo'):
        response = check_told(streamed([cut], "length", tools=TOOLS))
        [item] = response["output"]
        assert ("function_call", "incomplete", "look") == (item["type"], item["status"], item["name"])
        assert CALL[len('{"name": "look", "arguments": ') :].startswith(item["arguments"])
        assert response == whole(cut, "length", tools=TOOLS)
    # whatever cut it
    assert "incomplete" == whole(CALL[:-9], "stop", tools=TOOLS)["status"]


def test_text_where_tools_may_be_called_is_a_message() -> None:
    response = check_told(streamed(["he", "llo"], tools=TOOLS))
    assert ["message"] == [item["type"] for item in response["output"]]


def test_log_probabilities_come_with_each_delta_and_with_the_part() -> None:
    envelope, choice = made(include=[LOGPROBS], top_logprobs=1)
    said = choice.event("a", SCORES) + choice.event("a", SCORES)
    found = events(choice.opening() + said + choice.closing("stop") + envelope.ending(Usage(1, 2)))
    entry = {
        "token": "a",
        "logprob": -0.5,
        "bytes": [97],
        "top_logprobs": [{"token": "z", "logprob": -0.25, "bytes": [122]}],
    }
    assert [[entry], [entry]] == [e["logprobs"] for e in found if e["type"] == "response.output_text.delta"]
    assert [entry, entry] == found[-1]["response"]["output"][0]["content"][0]["logprobs"]


def test_a_replica_that_begins_anew_begins_the_count_anew() -> None:
    envelope, choice = made(tools=TOOLS)
    assert b"" == choice.event('{"na', ())
    choice.event('me": "look", "arguments": {', ())
    choice.restart()
    said = choice.event("hello", ())
    response = check_told(events(choice.opening() + said + choice.closing("stop") + envelope.ending(Usage(1, 1))))
    assert ["hello"] == [item["content"][0]["text"] for item in response["output"]]


def test_a_broken_stream_ends_with_an_error_and_the_response_that_failed_by_it() -> None:
    envelope, choice = made()
    said = choice.event("hel", ())
    found = events(
        choice.opening() + said + envelope.broken(Refused(503, "The replica failed.", code="replica_failed"))
    )
    error, failed = found[-2:]
    assert list(range(len(found))) == [event["sequence_number"] for event in found]
    assert ("error", "The replica failed.", "replica_failed") == (error["type"], error["message"], error["code"])
    assert {"message": "The replica failed.", "type": "server_error", "param": None, "code": "replica_failed"} == (
        error["error"]
    )
    response = failed["response"]
    assert ("response.failed", "failed") == (failed["type"], response["status"])
    assert {"code": "server_error", "message": "The replica failed."} == response["error"]


def test_what_the_model_thought_is_an_item_before_the_others() -> None:
    published: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    cases: list[tuple[list[str], list[dict[str, Any]]]] = [(["so"], []), ([CALL], TOOLS)]
    for pieces, tools in cases:
        fields: dict[str, Any] = {"tools": tools} if tools else {}
        envelope, choice = made(**fields)
        said = choice.thought("I th") + choice.thought("ink") + b"".join(choice.event(piece, ()) for piece in pieces)
        found = events(choice.opening() + said + choice.closing("stop") + envelope.ending(Usage(3, 2, 1)))
        response = check_told(found)
        Response.model_validate(response)
        for event in found:
            published.validate_python(event)
        assert ["reasoning", "function_call" if tools else "message"] == [item["type"] for item in response["output"]]
        assert [{"type": "reasoning_text", "text": "I think"}] == response["output"][0]["content"]
        told = [event["delta"] for event in found if event["type"] == "response.reasoning_text.delta"]
        assert ["I th", "ink"] == told

    envelope, choice = made()
    choice.thought("I think")
    body = json.loads(envelope.body([choice.whole("", (), "length")], Usage(3, 2, 1)))
    assert [("reasoning", "incomplete")] == [(item["type"], item["status"]) for item in body["output"]]


def test_thoughts_alone_are_followed_by_an_empty_message() -> None:
    envelope, choice = made()
    choice.thought("I think")
    body = json.loads(envelope.body([choice.whole("", (), "stop")], Usage(3, 2, 1)))
    assert ["reasoning", "message"] == [item["type"] for item in body["output"]]
