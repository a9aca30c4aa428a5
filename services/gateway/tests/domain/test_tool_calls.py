"""Calls of tools as OpenAI's: several in one answer, cut ones as far as they came, and never the JSON behind them."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_gateway.domain.answers.choice_encoder import ChoiceEncoder, FinishReason
from weft_gateway.domain.answers.encoders import encoder_for, envelope_for
from weft_gateway.domain.inference_request import Constraint, InferenceRequest, Message
from weft_gateway.domain.openai.chat import check_chat
from weft_gateway.domain.openai.tools import MAX_CALLS
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.submission import submission

HI: dict[str, Any] = {"role": "user", "content": "hi"}
FORMAT: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {"name": "x", "schema": {"type": "object", "properties": {"name": {"type": "string"}}}},
}
LINES = [
    ("look", '{"at": "a } \\" b", "in": [{}]}'),
    ("look", "{}"),
    ("listen", '{"name": "look", "arguments": {}}'),
]
WHOLE = "\n".join(f'{{"name": "{name}", "arguments": {arguments}}}' for name, arguments in LINES)


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


def check(**fields: Any) -> InferenceRequest:
    return check_chat(json.dumps({"model": "m", "messages": [HI]} | fields).encode())


def calling(*names: str, or_json: str = "") -> ChoiceEncoder:
    asked = InferenceRequest(
        model="m",
        chat=(Message("user", "hi"),),
        calls=names,
        constraint=Constraint("{}", or_text=not or_json, or_json=or_json),
    )
    return encoder_for(asked, envelope_for(asked, "i-1", 7, "m", "d"), 0)


def both(choice: ChoiceEncoder, pieces: list[str], finish: FinishReason) -> tuple[Any, str, list[list[str]]]:
    """How an answer ends, its text, and its calls with name and arguments, the same whole and streamed."""
    whole = json.loads(choice.whole("".join(pieces), (), finish))
    said = b"".join([choice.event(piece, ()) for piece in pieces])
    said = choice.opening() + said + choice.closing(finish)
    events = [json.loads(part.removeprefix("data: ")) for part in said.decode().split("\n\n") if part]
    deltas = [event["choices"][0]["delta"] for event in events]
    calls: list[list[str]] = []
    for delta in deltas:
        for call in delta.get("tool_calls", ()):
            if "id" in call:
                assert len(calls) == call["index"]
                assert "function" == call["type"]
                calls.append([call["function"]["name"], ""])
            assert len(calls) - 1 == call["index"]
            calls[-1][1] += call["function"]["arguments"]
    text = "".join(delta.get("content") or "" for delta in deltas)
    message = whole["message"]
    assert (whole["finish_reason"], message["content"] or "") == (events[-1]["choices"][0]["finish_reason"], text)
    found = message.get("tool_calls", [])
    assert [[call["function"]["name"], call["function"]["arguments"]] for call in found] == calls
    assert len(calls) == len({call["id"] for call in found})
    assert (message["content"] is None) == bool(calls)
    return whole["finish_reason"], text, calls


@given(st.lists(st.integers(0, len(WHOLE)), max_size=8))
def test_several_calls_are_read_from_any_pieces_each_with_its_index_and_its_name_first(cuts: list[int]) -> None:
    pieces = [WHOLE[a:b] for a, b in pairwise([0, *sorted(cuts), len(WHOLE)])]
    found = both(calling("look", "listen"), pieces, "stop")
    assert ("tool_calls", "", [list(line) for line in LINES]) == found


@given(st.integers(0, len(WHOLE)), st.sampled_from(["stop", "length"]))
def test_a_call_that_is_cut_has_its_arguments_so_far_and_no_json_is_said_as_text(cut: int, finish: Any) -> None:
    ended, text, calls = both(calling("look", "listen"), list(WHOLE[:cut]), finish)
    assert "" == text
    for (name, arguments), (whole_name, whole_arguments) in zip(calls, LINES, strict=False):
        assert name == whole_name
        assert whole_arguments.startswith(arguments)
    missing = calls != [list(line) for line in LINES[: len(calls)]] or WHOLE[:cut].endswith('"name')
    if finish == "length" or missing:
        assert "length" == ended


def test_a_call_cut_within_its_head_is_one_where_it_can_be_one_functions_alone() -> None:
    assert ("length", "", [["look", ""]]) == both(calling("look"), ['{"na'], "length")
    assert ("length", "", []) == both(calling("look", "listen"), ['{"name": "l'], "length")
    assert ("length", "", [["listen", ""]]) == both(calling("look", "listen"), ['{"name": "li'], "length")
    # an engine of an older release stops within it, which is no end of a call either
    assert ("length", "", [["look", '{"a"']]) == both(calling("look"), ['{"name": "look", "arguments": {"a"'], "stop")


@given(st.lists(st.integers(0, 30), max_size=4))
def test_json_in_the_format_that_was_asked_for_is_no_call_though_it_begins_like_one(cuts: list[int]) -> None:
    for answer in ('{"name": "loo", "arguments": 1}', '{"answer": 1}', '{"name": "look"}', "[1, 2]"):
        pieces = [answer[a:b] for a, b in pairwise([0, *sorted(cuts), len(answer)])]
        assert ("stop", answer, []) == both(calling("look", or_json="{}"), pieces, "stop")
    call = ['{"name":"look",', '"arguments":', ' {"a":1}}']
    assert ("tool_calls", "", [["look", '{"a":1}']]) == both(calling("look", or_json="{}"), call, "stop")
    assert ("length", "", []) == both(calling("look", or_json="{}"), ['{"name": "loo'], "length")


def test_several_calls_are_the_default_and_one_at_most_where_that_is_asked_for() -> None:
    for parallel, most in ((None, MAX_CALLS), (True, MAX_CALLS), (False, 1)):
        asked = check(tools=[tool("look")], parallel_tool_calls=parallel)
        assert most == submission(asked, "c").constraint.most
        assert ("several such lines" in asked.chat[0].content) == (most > 1)


def test_tools_go_together_with_a_format_which_an_answer_without_a_call_has() -> None:
    asked = check(tools=[tool("look")], response_format=FORMAT)
    constraint = submission(asked, "c").constraint
    assert (False, FORMAT["json_schema"]["schema"]) == (constraint.or_text, json.loads(constraint.or_json))
    assert constraint.or_json in asked.chat[0].content
    required = submission(check(tools=[tool("look")], tool_choice="required", response_format=FORMAT), "c").constraint
    assert "" == required.or_json
    none = submission(check(tools=[tool("look")], tool_choice="none", response_format=FORMAT), "c").constraint
    assert FORMAT["json_schema"]["schema"] == json.loads(none.json_schema)


def test_stops_are_for_text_so_an_answer_that_must_be_a_call_has_none() -> None:
    assert ["x"] == list(submission(check(tools=[tool("look")], stop="x"), "c").stop)
    assert [] == list(submission(check(tools=[tool("look")], stop="x", tool_choice="required"), "c").stop)
    with pytest.raises(Refused, match="together with `tools` and `response_format`") as refused:
        check(tools=[tool("look")], stop="x", response_format=FORMAT)
    assert "stop" == refused.value.param


@pytest.mark.parametrize("name", ["", "a b", "a.b", "é", "x" * 65, "a\n"])
def test_a_functions_name_is_as_the_api_takes_it(name: str) -> None:
    with pytest.raises(Refused, match="1 to 64 of a-z") as refused:
        check(tools=[tool("ok"), tool(name)])
    assert "tools[1].function.name" == refused.value.param
    called = {"id": "c", "type": "function", "function": {"name": name, "arguments": "{}"}}
    with pytest.raises(Refused, match="1 to 64 of a-z") as refused:
        check(messages=[HI, {"role": "assistant", "tool_calls": [called]}])
    assert "messages[1].tool_calls[0].function.name" == refused.value.param


def test_two_tools_of_one_name_and_choices_of_none_are_refused_by_their_field() -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("tools[1].function.name", {"tools": [tool("a"), tool("a")]}),
        ("tool_choice", {"tool_choice": "required"}),
        ("tool_choice", {"tool_choice": {"type": "function", "function": {"name": "a"}}}),
        ("tool_choice", {"tools": [tool("a")], "tool_choice": {"type": "function", "function": {"name": "b"}}}),
        ("tool_choice", {"tools": [tool("a")], "tool_choice": "always"}),
    ]
    for param, fields in wrong:
        with pytest.raises(Refused) as refused:
            check(**fields)
        assert (400, param) == (refused.value.status, refused.value.param)
    for choice in ("none", "auto"):
        assert () == check(tool_choice=choice).calls


def test_what_was_answered_can_be_sent_back_with_a_result_for_each_call_a_cut_one_too() -> None:
    message = json.loads(calling("look", "listen").whole(WHOLE[:-12], (), "length"))["message"]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "x"} for call in message["tool_calls"]]
    said = check(messages=[HI, message, *results], tools=[tool("look"), tool("listen")]).chat
    assert WHOLE.split("\n")[:2] == said[2].content.split("\n")[:2]
    assert ["look returned: x", "look returned: x", "listen returned: x"] == [each.content for each in said[3:]]
