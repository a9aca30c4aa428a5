"""The turns of a chat and the items of a response: what an engine is told of them, and what is refused of them."""

import json
from typing import Any

import pytest
from weft_gateway.domain.inference_request import Message
from weft_gateway.domain.openai.chat import check_chat
from weft_gateway.domain.openai.responses import check_response
from weft_gateway.domain.refused import Refused

HI = {"role": "user", "content": "hi"}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":"x"}'}}
CALLED = {"role": "assistant", "tool_calls": [CALL]}
ITEM = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at":"x"}'}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "sunny"}
LOOK = '{"name": "look", "arguments": {"at":"x"}}'


def chat(*messages: Any) -> list[Message]:
    return list(check_chat(json.dumps({"model": "m", "messages": messages}).encode()).chat)


def response(given: Any, **more: Any) -> list[Message]:
    return list(check_response(json.dumps({"model": "m", "input": given, **more}).encode()).chat)


@pytest.mark.parametrize(
    ("role", "told"),
    [("system", "system"), ("developer", "system"), ("user", "user"), ("assistant", "assistant")],
)
def test_each_role_is_one_that_templates_know(role: str, told: str) -> None:
    assert [Message(told, "hi")] == chat({"role": role, "content": "hi"})
    assert [Message(told, "hi")] == response([{"role": role, "content": "hi"}])
    assert [Message(told, "hi")] == response([{"type": "message", "role": role, "content": "hi"}])


def test_parts_of_text_are_lines_of_one() -> None:
    parts: list[dict[str, Any]] = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert [Message("user", "a\nb")] == chat({"role": "user", "content": parts})
    parts = [{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b", "annotations": []}]
    assert [Message("user", "a\nb")] == response([{"role": "user", "content": parts}])


def test_a_speaker_may_have_a_name_of_64_characters() -> None:
    assert [Message("user", "hi", "n" * 64)] == chat(HI | {"name": "n" * 64})


def test_a_call_and_its_result_are_told_in_the_form_in_which_calls_are_made() -> None:
    result = {"role": "tool", "tool_call_id": "c1", "content": "sunny"}
    expected = [Message("user", "hi"), Message("assistant", LOOK), Message("user", "look returned: sunny")]
    assert expected == chat(HI, CALLED, result)
    assert expected == response([HI, ITEM, OUTPUT])


def test_what_an_assistant_said_before_its_calls_stands_before_them() -> None:
    two = CALLED | {"content": "let me see", "tool_calls": [CALL, CALL | {"id": "c2"}]}
    assert [Message("assistant", f"let me see\n{LOOK}\n{LOOK}")] == chat(two)
    said = {"role": "assistant", "content": "let me see"}
    assert [Message("assistant", f"let me see\n{LOOK}\n{LOOK}")] == response([said, ITEM, ITEM | {"call_id": "c2"}])
    assert [Message("assistant", LOOK)] == response([{"role": "assistant", "content": ""}, ITEM])
    # what a user said is a turn of its own
    assert [Message("user", "hi"), Message("assistant", LOOK)] == response([HI, ITEM])


def test_a_call_without_arguments_has_an_empty_object_of_them() -> None:
    bare = CALL | {"function": {"name": "look", "arguments": ""}}
    assert [Message("assistant", '{"name": "look", "arguments": {}}')] == chat(CALLED | {"tool_calls": [bare]})


def test_instructions_are_one_system_message_at_the_front() -> None:
    system = {"role": "system", "content": "be brief"}
    assert [Message("system", "be kind"), Message("user", "hi")] == response("hi", instructions="be kind")
    assert [Message("system", "be kind\n\nbe brief"), Message("user", "hi")] == response(
        [system, HI], instructions="be kind"
    )
    assert [Message("user", "hi"), Message("system", "be brief")] == response([HI, system])
    assert [Message("user", "hi")] == response("hi", instructions="")


def test_what_is_told_of_tools_joins_a_system_message_that_is_there() -> None:
    tools = [{"type": "function", "function": {"name": "look"}}]
    for before, count in (([], 2), ([{"role": "system", "content": "be kind"}], 2)):
        body = {"model": "m", "messages": [*before, HI], "tools": tools}
        found = check_chat(json.dumps(body).encode()).chat
        assert (count, "system") == (len(found), found[0].role)
        assert bool(before) is found[0].content.startswith("be kind\n\n")
        assert '"name":"look"' in found[0].content


def test_an_earlier_models_thoughts_are_left_out() -> None:
    assert [Message("user", "hi")] == response([{"type": "reasoning", "id": "r", "summary": []}, HI])


BAD_TURNS: list[tuple[list[dict[str, Any]], str | None]] = [
    ([{"role": "robot", "content": "hi"}], "messages[0].role"),
    ([{"role": "function", "content": "hi", "name": "f"}], "messages[0].role"),
    ([HI, {"role": "user"}], "messages[1].content"),
    ([HI | {"refusal": "no"}], "messages[0].refusal"),
    ([HI | {"audio": {"id": "x"}}], "messages[0].audio"),
    ([HI | {"annotations": [{}]}], "messages[0].annotations"),
    ([HI | {"function_call": {}, "role": "assistant"}], None),
    ([HI | {"function_call": {"name": "f"}}], "messages[0].function_call"),
    ([HI | {"name": "n" * 65}], "messages[0].name"),
    ([HI | {"tool_call_id": "c1"}], "messages[0].tool_call_id"),
    ([{"role": "tool", "content": "x"}], "messages[0].tool_call_id"),
    ([CALLED, {"role": "tool", "content": "x", "tool_call_id": "c2"}], "messages[1].tool_call_id"),
    ([HI | {"tool_calls": [CALL]}], "messages[0].tool_calls"),
    ([CALLED | {"tool_calls": [CALL, CALL | {"type": "custom"}]}], "messages[0].tool_calls[1]"),
    ([CALLED | {"tool_calls": [CALL | {"custom": {}}]}], "messages[0].tool_calls[0]"),
    ([CALLED | {"tool_calls": [{"id": "c", "type": "function"}]}], "messages[0].tool_calls[0]"),
    (
        [CALLED | {"tool_calls": [CALL | {"function": {"name": "f g", "arguments": ""}}]}],
        "messages[0].tool_calls[0].function.name",
    ),
    ([{"role": "user", "content": []}], "messages[0].content"),
    ([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}], "messages[0].content[0]"),
    ([{"role": "user", "content": [{"type": 5, "text": "x"}]}], "messages[0].content[0]"),
    ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0]"),
    ([{"role": "user", "content": [{"type": "text", "text": "x", "more": 1}]}], "messages[0].content[0]"),
]


@pytest.mark.parametrize(("messages", "param"), BAD_TURNS)
def test_a_turn_that_can_not_be_told_is_refused_by_its_place(messages: list[Any], param: str | None) -> None:
    if param is None:
        chat(*messages)
        return
    with pytest.raises(Refused) as caught:
        chat(*messages)
    assert (400, param) == (caught.value.status, caught.value.param)
    assert f"`{param}`" in caught.value.sentence


BAD_ITEMS: list[tuple[list[dict[str, Any]], str]] = [
    ([{"role": "robot", "content": "hi"}], "input[0].role"),
    ([{"role": "tool", "content": "hi"}], "input[0].role"),
    ([HI, {"id": "msg_1"}], "input[1]"),
    ([{"type": "item_reference", "id": "msg_1"}], "input[0]"),
    ([{"type": "computer_call"}], "input[0]"),
    ([ITEM | {"namespace": "n"}], "input[0].namespace"),
    ([ITEM | {"name": "f g"}], "input[0].name"),
    ([OUTPUT], "input[0].call_id"),
    ([ITEM, OUTPUT | {"call_id": "c2"}], "input[1].call_id"),
    ([ITEM, {"type": "function_call_output", "output": "x"}], "input[1].call_id"),
    ([{"role": "user", "content": [{"type": "input_image"}]}], "input[0].content[0]"),
    ([{"role": "user", "content": [{"type": "input_text", "text": "x", "logprobs": []}]}], "input[0].content[0]"),
]


@pytest.mark.parametrize(("items", "param"), BAD_ITEMS)
def test_an_item_that_can_not_be_told_is_refused_by_its_place(items: list[Any], param: str) -> None:
    with pytest.raises(Refused) as caught:
        response(items)
    assert (400, param) == (caught.value.status, caught.value.param)
    assert f"`{param}`" in caught.value.sentence


@pytest.mark.parametrize(
    ("body", "sentence", "code"),
    [
        (b"", "The body is empty; a JSON object is expected.", "malformed_json"),
        (b"{", "The body is not JSON: ", "malformed_json"),
        (b"\xff", "The body is not JSON: ", "malformed_json"),
        (b"[]", "The body is a list; it must be an object.", "wrong_type"),
        (b'{"messages": []}', "`model` is missing.", "missing_field"),
        (b'{"model": "m", "messages": [{}]}', "`messages[0].role` is missing.", "missing_field"),
        (b'{"model": 5, "messages": []}', "`model` is an integer; it must be a string.", "wrong_type"),
        (b'{"model": "m", "messages": [], "x": 1}', "`x` is not a field that is known here", "unknown_field"),
        (
            b'{"model": "m", "messages": [{"role": "user", "x": 1}]}',
            "`messages[0].x` is not a field that is known here",
            "unknown_field",
        ),
        (
            b'{"model": "m", "messages": [], "n": "1"}',
            "`n` is a string; it must be an integer or null.",
            "wrong_type",
        ),
    ],
)
def test_a_body_that_does_not_fit_is_one_sentence(body: bytes, sentence: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        check_chat(body)
    assert (400, code) == (caught.value.status, caught.value.code)
    assert caught.value.sentence.startswith(sentence)


def test_a_response_shows_what_holds_for_what_its_request_left_out() -> None:
    def shown(**fields: Any) -> dict[str, Any]:
        asked = check_response(json.dumps({"model": "m", "input": "hi", **fields}).encode())
        assert asked.response_echo is not None
        found: dict[str, Any] = json.loads(b"{" + asked.response_echo[:-1] + b"}")
        return found

    assert {
        "background": False,
        "previous_response_id": None,
        "store": False,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "prompt_cache_key": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "service_tier": "default",
        "temperature": None,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": None,
        "truncation": "disabled",
        "user": None,
    } == shown()
    tool = {"type": "function", "name": "f"}
    choice = {"type": "function", "name": "f"}
    told = shown(
        tools=[tool],
        tool_choice=choice,
        parallel_tool_calls=False,
        instructions="be kind",
        text={"format": {"type": "json_object"}},
        metadata={"a": "b"},
    )
    assert ([tool], choice, False, "be kind", {"a": "b"}) == (
        told["tools"],
        told["tool_choice"],
        told["parallel_tool_calls"],
        told["instructions"],
        told["metadata"],
    )
    assert {"format": {"type": "json_object"}, "verbosity": "medium"} == told["text"]
    assert 4 == shown(top_logprobs=4)["top_logprobs"]
    # what is long is not said again
    assert 65534 == len(shown(instructions="x" * 65534)["instructions"])
    assert shown(instructions="x" * 65535)["instructions"] is None
    many = [{**tool, "name": f"f{number}", "description": "x" * 2000} for number in range(60)]
    assert [] == shown(tools=many)["tools"]
