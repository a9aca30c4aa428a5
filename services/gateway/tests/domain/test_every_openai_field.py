"""Every field of OpenAI's published request schemas is honoured, taken without effect, or refused by its name.

The fields are those of the installed client's types. A release that brings a new one fails here until someone decides.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args, get_origin, get_type_hints

import openai.types.chat as published
import pytest
from openai.types import completion_create_params
from openai.types.chat import completion_create_params as chat_create_params
from openai.types.shared_params import FunctionDefinition, ResponseFormatJSONSchema, response_format_json_schema
from weft_gateway.domain.choices import split_choices
from weft_gateway.domain.inference_request import InferenceRequest
from weft_gateway.domain.openai.chat import check_chat
from weft_gateway.domain.openai.completions import check_completion
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.submission import submission

HI: dict[str, Any] = {"role": "user", "content": "hi"}
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
CALLED: dict[str, Any] = {
    "role": "assistant",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
}
RESULT: dict[str, Any] = {"role": "tool", "tool_call_id": "c1", "content": "sunny"}

Effect = Callable[[InferenceRequest], object]


@dataclass(frozen=True)
class Honoured:
    """A value, what is looked at, and what it must be."""

    value: Any
    effect: Effect
    expected: Any


@dataclass(frozen=True)
class Harmless:
    """A value that is taken and changes nothing."""

    value: Any


@dataclass(frozen=True)
class Refuses:
    """A value that is refused by its field's name."""

    value: Any


Row = Honoured | Harmless | Refuses
REFUSED = "refused"
NAMED = "named"


def sampled(name: str, value: Any) -> Honoured:
    return Honoured(value, lambda asked: getattr(submission(asked, "c").sampling, name), value)


def schema_of(asked: InferenceRequest) -> Any:
    return json.loads(submission(asked, "c").constraint.json_schema or "null")


SHARED: dict[str, Row] = {
    "model": Honoured("m-2", lambda asked: asked.model, "m-2"),
    "frequency_penalty": sampled("frequency_penalty", 0.5),
    "presence_penalty": sampled("presence_penalty", -0.5),
    "temperature": sampled("temperature", 0.25),
    "top_p": sampled("top_p", 0.5),
    "seed": sampled("seed", 7),
    "logit_bias": Honoured(
        {"5": -100}, lambda asked: [(b.id, b.value) for b in submission(asked, "c").bias], [(5, -100.0)]
    ),
    "max_tokens": Honoured(9, lambda asked: submission(asked, "c").max_tokens, 9),
    "n": Honoured(3, lambda asked: len(split_choices(asked, 9, 0)), 3),
    "stop": Honoured(["a", "b"], lambda asked: list(submission(asked, "c").stop), ["a", "b"]),
    "stream": Honoured(True, lambda asked: asked.stream, True),
    "stream_options": Honoured({"include_usage": True}, lambda asked: asked.include_usage, True),
    "user": Honoured("me", lambda asked: asked.attribution.user, "me"),
}
CHAT: dict[str, Row] = {
    **SHARED,
    "messages": Honoured([HI, HI], lambda asked: len(submission(asked, "c").chat.messages), 2),
    "max_completion_tokens": Honoured(8, lambda asked: submission(asked, "c").max_tokens, 8),
    "logprobs": Honoured(True, lambda asked: submission(asked, "c").HasField("scores"), True),
    "top_logprobs": Honoured(4, lambda asked: submission(asked, "c").scores, 4),
    "response_format": Honoured({"type": "json_object"}, schema_of, {"type": "object"}),
    "tools": Honoured(
        [TOOL], lambda asked: asked.calls and asked.constraint is not None and asked.constraint.or_text, True
    ),
    "tool_choice": Honoured("required", lambda asked: asked.constraint is not None and asked.constraint.or_text, False),
    "parallel_tool_calls": Honoured(False, lambda asked: asked.constraint is not None and asked.constraint.most, 1),
    "metadata": Honoured({"a": "b"}, lambda asked: asked.attribution.metadata, (("a", "b"),)),
    "store": Refuses(True),
    "service_tier": Honoured("auto", lambda asked: asked.service_tier, "default"),
    "safety_identifier": Honoured("x", lambda asked: asked.attribution.safety_identifier, "x"),
    "prompt_cache_key": Honoured("x", lambda asked: asked.attribution.prompt_cache_key, "x"),
    "prompt_cache_options": Harmless({"mode": "implicit"}),
    "prompt_cache_retention": Harmless("24h"),
    "audio": Refuses({"voice": "alloy", "format": "wav"}),
    "function_call": Refuses({"name": "x"}),
    "functions": Refuses([{"name": "x"}]),
    "modalities": Refuses(["text", "audio"]),
    "moderation": Refuses({"model": "x"}),
    "prediction": Refuses({"type": "content", "content": "x"}),
    "reasoning_effort": Refuses("high"),
    "verbosity": Refuses("low"),
    "web_search_options": Refuses({}),
}
TEXT: dict[str, Row] = {
    **SHARED,
    "prompt": Honoured(["a", "b"], lambda asked: [one.text for one in split_choices(asked, 9, 0)], ["a", "b"]),
    "echo": Honoured(True, lambda asked: asked.echo, True),
    "logprobs": Honoured(2, lambda asked: submission(asked, "c").scores, 2),
    "best_of": Refuses(4),
    "suffix": Refuses("end"),
}
NEEDS: dict[str, dict[str, Any]] = {
    "stream_options": {"stream": True},
    "top_logprobs": {"logprobs": True},
    "tool_choice": {"tools": [TOOL]},
    "parallel_tool_calls": {"tools": [TOOL]},
}


def fields_of(*types: Any) -> set[str]:
    return {name for type in types for name in get_type_hints(type)}


def members(union: Any) -> list[Any]:
    return [each for each in get_args(union) if get_origin(each) is None]


def test_the_table_has_every_published_field_and_no_other() -> None:
    chat = fields_of(
        chat_create_params.CompletionCreateParamsNonStreaming, chat_create_params.CompletionCreateParamsStreaming
    )
    text = fields_of(
        completion_create_params.CompletionCreateParamsNonStreaming,
        completion_create_params.CompletionCreateParamsStreaming,
    )
    assert chat == set(CHAT)
    assert text == set(TEXT)


CASES = [("chat", field, row) for field, row in CHAT.items()] + [("text", field, row) for field, row in TEXT.items()]


@pytest.mark.parametrize(("route", "field", "row"), CASES, ids=[f"{route}-{field}" for route, field, _ in CASES])
def test_a_published_field_is_honoured_or_refused_and_never_dropped(route: str, field: str, row: Row) -> None:
    check = check_chat if route == "chat" else check_completion
    base: dict[str, Any] = {"model": "m"} | ({"messages": [HI]} if route == "chat" else {"prompt": "once"})
    without = check(json.dumps(base | NEEDS.get(field, {})).encode())
    body = json.dumps(base | NEEDS.get(field, {}) | {field: row.value}).encode()
    match row:
        case Honoured(_, effect, expected):
            assert expected == effect(check(body))
            assert expected != effect(without)
        case Harmless():
            assert without == check(body)
        case Refuses():
            with pytest.raises(Refused) as refused:
                check(body)
            assert (400, field) == (refused.value.status, refused.value.param)
            assert f"`{field}`" in refused.value.sentence
    # null is always "not given", where it may be given at all
    if field not in ("model", "messages", "prompt"):
        assert without == check(json.dumps(base | NEEDS.get(field, {}) | {field: None}).encode()) or field in NEEDS


def turn(role: str, **fields: Any) -> list[dict[str, Any]]:
    """Messages whose last one has the fields."""
    before = [HI, CALLED] if role == "tool" else [HI]
    base: dict[str, Any] = RESULT if role == "tool" else {"role": role, "content": "said"}
    return [*before, base | fields]


TURNS: dict[str, dict[str, tuple[str, Any]]] = {
    "developer": {"name": (NAMED, "x")},
    "system": {"name": (NAMED, "x")},
    "user": {"name": (NAMED, "x")},
    "assistant": {
        "name": (NAMED, "x"),
        "audio": (REFUSED, {"id": "x"}),
        "refusal": (REFUSED, "no"),
        "function_call": (REFUSED, {"name": "x", "arguments": ""}),
        "tool_calls": ("honoured", CALLED["tool_calls"]),
    },
    "tool": {"tool_call_id": ("honoured", "c1")},
    "function": {"name": (REFUSED, "x")},
}


def test_every_field_of_every_kind_of_message_is_decided() -> None:
    seen: dict[str, set[str]] = {}
    for kind in members(published.ChatCompletionMessageParam):
        hints = get_type_hints(kind)
        seen[str(get_args(hints["role"])[0])] = set(hints) - {"role", "content"}
    assert seen == {role: set(fields) for role, fields in TURNS.items()}
    for role, fields in TURNS.items():
        for field, (what, value) in fields.items():
            body = json.dumps({"model": "m", "messages": turn(role, **{field: value})}).encode()
            if what == REFUSED:
                with pytest.raises(Refused, match=f"{field}|{role}"):
                    check_chat(body)
            elif what == NAMED:
                assert value == submission(check_chat(body), "c").chat.messages[-1].name
            else:
                said = check_chat(body).chat[-1].content
                assert "look" in said


def test_only_text_parts_of_a_message_are_taken() -> None:
    kinds = {get_args(get_type_hints(kind)["type"])[0] for kind in members(published.ChatCompletionContentPartParam)}
    assert {"text", "image_url", "input_audio", "file"} == kinds
    for kind in [*kinds, "refusal"]:
        part: dict[str, Any] = {"type": kind, "text": "said"} if kind == "text" else {"type": kind, kind: {}}
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": [part]}]}).encode()
        if kind == "text":
            assert "said" == check_chat(body).chat[0].content
        else:
            with pytest.raises(Refused, match="only text parts are taken") as refused:
                check_chat(body)
            assert "messages[0].content[0]" == refused.value.param


def test_the_fields_inside_formats_options_and_tools_are_those_that_are_known() -> None:
    assert {"include_usage", "include_obfuscation"} == fields_of(published.ChatCompletionStreamOptionsParam)
    assert {"type", "json_schema"} == fields_of(ResponseFormatJSONSchema)
    assert {"name", "description", "schema", "strict"} == fields_of(response_format_json_schema.JSONSchema)
    assert {"name", "description", "parameters", "strict"} == fields_of(FunctionDefinition)
    assert {"type", "function"} == fields_of(published.ChatCompletionFunctionToolParam)


def test_a_named_tool_and_allowed_tools_leave_only_those() -> None:
    other = {"type": "function", "function": {"name": "other"}}

    def names(choice: Any) -> Any:
        body = {"model": "m", "messages": [HI], "tools": [TOOL, other], "tool_choice": choice}
        asked = check_chat(json.dumps(body).encode())
        schema = schema_of(asked)
        calls = schema.get("anyOf", [schema])
        assert asked.constraint is not None
        return [call["properties"]["name"]["const"] for call in calls], asked.constraint.or_text

    assert (["look", "other"], True) == names("auto")
    assert (["look", "other"], False) == names("required")
    assert (["other"], False) == names({"type": "function", "function": {"name": "other"}})
    allowed = {"type": "function", "function": {"name": "look"}}
    assert (["look"], True) == names({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [allowed]}})
    with pytest.raises(Refused, match="names 'none-such'"):
        names({"type": "function", "function": {"name": "none-such"}})


def test_a_tools_references_lead_to_their_new_place() -> None:
    parameters = {"$defs": {"a": {"type": "string"}}, "type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    asked = check_chat(json.dumps({"model": "m", "messages": [HI], "tools": [tool, TOOL]}).encode())
    schema = schema_of(asked)
    pointer = schema["anyOf"][0]["properties"]["arguments"]["properties"]["x"]["$ref"]
    found: Any = schema
    for step in pointer.split("/")[1:]:
        found = found[int(step) if step.isdecimal() else step]
    assert {"type": "string"} == found


def test_calls_and_their_results_are_told_to_the_model_in_the_form_it_is_to_use() -> None:
    asked = check_chat(json.dumps({"model": "m", "messages": [HI, CALLED, RESULT], "tools": [TOOL]}).encode())
    system, _, called, result = asked.chat
    assert '"name":"look"' in system.content
    assert '{"name": "look", "arguments": {}}' == called.content
    assert ("user", "look returned: sunny") == (result.role, result.content)
