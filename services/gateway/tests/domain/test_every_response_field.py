"""Every field of OpenAI's published Responses API is honoured, taken without effect, or refused by its name.

The fields are those of the installed client's types. A release that brings a new one fails here until someone decides.
"""

import json
from typing import Any, get_args, get_type_hints

import pytest
from openai.types import responses as published
from openai.types.responses import response_create_params as params
from openai.types.responses import response_input_param as inputs
from openai.types.responses import tool_param
from weft_gateway.domain.inference_request import InferenceRequest
from weft_gateway.domain.openai.responses import INCLUDABLE, LOGPROBS, check_response
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.submission import submission

from .test_every_openai_field import Harmless, Honoured, Refuses, Row, fields_of, sampled, schema_of

HI: dict[str, Any] = {"role": "user", "content": "hi"}
TOOL: dict[str, Any] = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": True}
CALLED: dict[str, Any] = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
RESULT: dict[str, Any] = {"type": "function_call_output", "call_id": "c1", "output": "sunny"}


def said(asked: InferenceRequest) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in asked.chat]


def shown(asked: InferenceRequest) -> Any:
    """What the answer shows of its request."""
    return json.loads(b"{" + (asked.response_echo or b"").removesuffix(b",") + b"}")


def echoed(name: str, value: Any) -> Honoured:
    """Without effect on the answer's text; the response shows it."""
    return Honoured(value, lambda asked: shown(asked)[name], value)


FIELDS: dict[str, Row] = {
    "model": Honoured("m-2", lambda asked: asked.model, "m-2"),
    "input": Honoured([HI, HI], lambda asked: len(asked.chat), 2),
    "instructions": Honoured("be kind", lambda asked: said(asked)[0], ("system", "be kind")),
    "max_output_tokens": Honoured(9, lambda asked: submission(asked, "c").max_tokens, 9),
    "temperature": sampled("temperature", 0.25),
    "top_p": sampled("top_p", 0.5),
    "stream": Honoured(True, lambda asked: asked.stream, True),
    "stream_options": Harmless({"include_obfuscation": True}),
    "text": Honoured({"format": {"type": "json_object"}}, schema_of, {"type": "object"}),
    "tools": Honoured([TOOL], lambda asked: asked.calls, ("look",)),
    "tool_choice": Honoured("required", lambda asked: asked.constraint is not None and asked.constraint.or_text, False),
    "parallel_tool_calls": Honoured(False, lambda asked: asked.constraint and asked.constraint.most, 1),
    "include": Honoured([LOGPROBS], lambda asked: submission(asked, "c").HasField("scores"), True),
    "top_logprobs": Honoured(4, lambda asked: submission(asked, "c").scores, 4),
    "metadata": echoed("metadata", {"a": "b"}),
    "max_tool_calls": echoed("max_tool_calls", 3),
    "prompt_cache_key": echoed("prompt_cache_key", "x"),
    "safety_identifier": echoed("safety_identifier", "x"),
    "user": echoed("user", "x"),
    "prompt_cache_options": Harmless({"mode": "implicit"}),
    "prompt_cache_retention": Harmless("24h"),
    "service_tier": Refuses("priority"),
    "store": Refuses(True),
    "previous_response_id": Refuses("resp_1"),
    "conversation": Refuses({"id": "conv_1"}),
    "background": Refuses(True),
    "prompt": Refuses({"id": "pmpt_1"}),
    "context_management": Refuses([{"type": "compaction"}]),
    "truncation": Refuses("auto"),
    "moderation": Refuses({"model": "x"}),
    "image": Refuses({"context_compression": "auto"}),
    "access_programs": Refuses({"cyber": "standard"}),
    "reasoning": Refuses({"effort": "high"}),
}
NEEDS: dict[str, dict[str, Any]] = {
    "stream_options": {"stream": True},
    "tool_choice": {"tools": [TOOL]},
    "parallel_tool_calls": {"tools": [TOOL]},
}
NEUTRAL: dict[str, Any] = {
    "store": False,
    "background": False,
    "truncation": "disabled",
    "service_tier": "default",
    "context_management": [],
    "reasoning": {"effort": "none", "summary": None},
    "include": sorted(INCLUDABLE - {LOGPROBS}),
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tools": [],
}


def checked(**fields: Any) -> InferenceRequest:
    return check_response(json.dumps({"model": "m", "input": "hi", **fields}).encode())


def refused(**fields: Any) -> Refused:
    with pytest.raises(Refused) as found:
        checked(**fields)
    assert 400 == found.value.status
    assert f"`{found.value.param}`" in found.value.sentence
    return found.value


def test_the_table_has_every_published_field_and_no_other() -> None:
    assert set(FIELDS) == fields_of(params.ResponseCreateParamsNonStreaming, params.ResponseCreateParamsStreaming)


@pytest.mark.parametrize(("field", "row"), FIELDS.items(), ids=FIELDS)
def test_a_published_field_is_honoured_or_refused_and_never_dropped(field: str, row: Row) -> None:
    needs = NEEDS.get(field, {})
    without = checked(**needs)
    match row:
        case Honoured(value, effect, expected):
            assert expected == effect(
                checked(**needs, **{field: value}) if field in NEEDS else checked(**{field: value})
            )
            assert expected != effect(without)
        case Harmless(value):
            assert without == checked(**needs, **{field: value})
        case Refuses(value):
            assert field == str(refused(**{field: value}).param).partition(".")[0]
    if field not in ("model", "input"):
        assert without == checked(**needs, **{field: None})


@pytest.mark.parametrize(("field", "value"), NEUTRAL.items(), ids=NEUTRAL)
def test_what_asks_for_nothing_special_is_taken(field: str, value: Any) -> None:
    assert said(checked()) == said(checked(**{field: value}))


def test_all_that_can_be_included_is_known() -> None:
    assert set(get_args(published.ResponseIncludable)) == INCLUDABLE
    assert "include[0]" == refused(include=["none.such"]).param


def test_the_response_shows_its_request_and_that_nothing_is_stored() -> None:
    found = shown(checked(instructions="be kind", tools=[TOOL], temperature=0.5))
    assert ("be kind", [TOOL], 0.5, False) == (
        found["instructions"],
        found["tools"],
        found["temperature"],
        found["store"],
    )
    assert ("auto", True, {"type": "text"}) == (
        found["tool_choice"],
        found["parallel_tool_calls"],
        found["text"]["format"],
    )
    # what is long is not sent back three times
    long = "x" * 100_000
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look", "x": long}]}
    format = {"type": "json_schema", "name": "x", "schema": {"type": "object"}, "description": long}
    tools = [TOOL | {"description": long}]
    asked = checked(instructions=long, tools=tools, tool_choice=allowed, text={"format": format})
    assert (None, []) == (shown(asked)["instructions"], shown(asked)["tools"])
    assert len(asked.response_echo or b"") < 2000


def type_of(kind: Any) -> str:
    """What a published type calls itself; some may leave it out."""
    hint = get_type_hints(kind)["type"]
    return next(name for each in (hint, *get_args(hint)) for name in get_args(each) if isinstance(name, str))


ITEMS: dict[str, dict[str, Any]] = {
    "message": {"role": "assistant", "content": "yes", "id": "msg_1", "status": "completed", "phase": "final_answer"},
    "function_call": CALLED | {"id": "fc_1", "status": "completed", "caller": {"type": "direct"}, "async": False},
    "function_call_output": RESULT
    | {"id": "x", "status": "completed", "name": "look", "caller": {"type": "direct"}, "namespace": None},
    "reasoning": {"id": "rs_1", "summary": [], "content": [], "encrypted_content": "x", "status": "completed"},
}
"""Items that are taken, with every field that they may have."""


def test_every_kind_of_item_is_taken_or_refused_by_its_type() -> None:
    # the union names some types twice: messages as they come in and as they went out
    names: set[str] = set()
    for kind in get_args(inputs.ResponseInputItemParam):
        hint = get_type_hints(kind, include_extras=False)["type"]
        [name] = [n for n in get_args(hint) if isinstance(n, str)] or [a for n in get_args(hint) for a in get_args(n)][
            :1
        ]
        names.add(name)
        if name in ITEMS and name != "message":
            known = set(get_type_hints(kind)) - {"namespace"}
            assert known <= {"type", *ITEMS[name]}, name
    assert {"message", "item_reference", "compaction", "mcp_call"} <= names
    for name in names:
        item: dict[str, Any] = {"type": name} | ITEMS.get(name, {"id": "x"})
        given = [HI, CALLED, item] if name == "function_call_output" else [HI, item]
        if name in ITEMS:
            assert checked(input=given)
        else:
            what = refused(input=given)
            assert "input[1]" == what.param
            assert name in what.sentence or "item_reference" == name


def test_an_item_that_was_to_be_stored_is_refused_with_the_clients_setting() -> None:
    for reference in ({"type": "item_reference", "id": "msg_1"}, {"id": "msg_1"}, {"type": None, "id": "msg_1"}):
        what = refused(input=[HI, reference])
        assert "providerOptions.openai.store=false" in what.sentence
    assert "use_previous_response_id=False" in refused(previous_response_id="resp_1").sentence
    assert "false" in refused(store=True).sentence


def test_items_become_the_turns_of_a_chat() -> None:
    call = CALLED | {"call_id": "c2"}
    asked = checked(
        instructions="be kind",
        input=[
            {"role": "developer", "content": "and short"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "sky?"}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {
                "type": "message",
                "role": "assistant",
                "id": "msg_1",
                "content": [{"type": "output_text", "text": "I look.", "annotations": [], "logprobs": []}],
            },
            CALLED,
            call,
            RESULT,
            RESULT | {"call_id": "c2", "output": [{"type": "input_text", "text": "windy"}]},
        ],
    )
    one = '{"name": "look", "arguments": {}}'
    assert [
        ("system", "be kind\n\nand short"),
        ("user", "sky?"),
        ("assistant", f"I look.\n{one}\n{one}"),
        ("user", "look returned: sunny"),
        ("user", "look returned: windy"),
    ] == said(asked)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": [{"type": "reasoning", "id": "x"}]}, "input"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [HI | {"mood": 1}]}, "input[0].mood"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0]"),
        ({"input": [{"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}]}, "input[0].content[0]"),
        ({"input": [RESULT]}, "input[0].call_id"),
        ({"input": [CALLED | {"name": "a b"}]}, "input[0].name"),
        ({"input": [CALLED | {"namespace": "x"}]}, "input[0].namespace"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": [TOOL, TOOL]}, "tools[1].name"),
        ({"tools": [TOOL | {"defer_loading": True}]}, "tools[0].defer_loading"),
        ({"tools": [TOOL], "top_logprobs": 1}, "top_logprobs"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "name": "other"}}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "web_search_preview"}}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "function"}}, "tool_choice"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
        ({"text": {"verbosity": "low"}}, "text.verbosity"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"temperature": 3}, "temperature"),
        ({"reasoning": {"summary": "auto"}}, "reasoning.summary"),
        ({"messages": [HI]}, "messages"),
        ({"metadata": {"a": "x" * 513}}, "metadata"),
        ({"metadata": {"a": 1}}, "metadata"),
        ({"safety_identifier": "x" * 129}, "safety_identifier"),
        ({"stream_options": {}}, "stream_options"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_named_by_its_place(fields: dict[str, Any], param: str) -> None:
    assert param == refused(**fields).param


def test_hosted_tools_are_refused_by_their_type_and_a_functions_fields_are_all_known() -> None:
    function: Any = None
    for kind in get_args(tool_param.ToolParam):
        name = type_of(kind)
        if name == "function":
            function = kind
        else:
            what = refused(tools=[{"type": name, "anything": 1}])
            assert ("tools[0]", True) == (what.param, name in what.sentence)
    assert {
        "type", "name", "parameters", "strict", "description", "async",
        "allowed_callers", "defer_loading", "output_schema",
    } == fields_of(function)  # fmt: skip
    harmless: dict[str, Any] = {
        "allowed_callers": ["direct"],
        "defer_loading": False,
        "async": False,
        "output_schema": {},
    }
    assert ("look",) == checked(tools=[TOOL | harmless]).calls


def test_a_choice_leaves_only_the_named_tools() -> None:
    other = TOOL | {"name": "other"}
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "other"}]}
    for choice, names, may_answer in (
        ("auto", ("look", "other"), True),
        ("required", ("look", "other"), False),
        ({"type": "function", "name": "other"}, ("other",), False),
        (allowed, ("other",), True),
    ):
        asked = checked(tools=[TOOL, other], tool_choice=choice)
        assert asked.constraint is not None
        assert (names, may_answer) == (asked.calls, asked.constraint.or_text)
    assert () == checked(tools=[TOOL], tool_choice="none").calls


def test_a_schema_constrains_the_answer_alone_and_beside_tools() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    format = {"type": "json_schema", "name": "place", "strict": True, "schema": schema}
    assert schema == schema_of(checked(text={"format": format}))
    beside = checked(text={"format": format}, tools=[TOOL]).constraint
    assert beside is not None
    assert (schema, False) == (json.loads(beside.or_json), beside.or_text)
    assert format == shown(checked(text={"format": format}))["text"]["format"]
