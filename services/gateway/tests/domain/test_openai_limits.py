"""Where each field of OpenAI's bodies ends: the last value that is taken, and the first that is refused by its name."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from weft_gateway.domain.choices import MAX_BYTES, MAX_CHOICES, split_choices
from weft_gateway.domain.inference_request import InferenceRequest
from weft_gateway.domain.openai.chat import check_chat
from weft_gateway.domain.openai.completions import check_completion
from weft_gateway.domain.openai.embeddings import check_embedding, check_length
from weft_gateway.domain.openai.responses import check_response
from weft_gateway.domain.openai.tools import MAX_CALLS, MAX_TOOLS
from weft_gateway.domain.refused import Refused

HI = {"role": "user", "content": "hi"}
HUGE = 2**31 - 1
Check = Callable[[bytes], Any]


def check(route: str, fields: dict[str, Any]) -> Any:
    """The request in a body of this route with these fields."""
    own: dict[str, tuple[Check, dict[str, Any]]] = {
        "chat": (check_chat, {"messages": [HI]}),
        "text": (check_completion, {"prompt": "once"}),
        "response": (check_response, {"input": "hi"}),
        "embedding": (check_embedding, {"input": "hi"}),
    }
    checked, needed = own[route]
    return checked(json.dumps({"model": "m", **needed, **fields}).encode())


def refused(route: str, fields: dict[str, Any]) -> Refused:
    with pytest.raises(Refused) as caught:
        check(route, fields)
    assert 400 == caught.value.status
    return caught.value


def tool(name: str = "f", **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **more}}


def json_format(size: int) -> dict[str, Any]:
    """A format whose schema is so many bytes of JSON."""
    schema = {"title": "x" * (size - len('{"title":""}'))}
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}


def flat_format(size: int) -> dict[str, Any]:
    return {"format": {"type": "json_schema", "name": "x", "schema": json_format(size)["json_schema"]["schema"]}}


LIMITS: list[tuple[str, str, list[Any], list[Any]]] = [
    ("chat text response", "temperature", [0, 2], [-0.01, 2.01]),
    ("chat text response", "top_p", [0.01, 1], [0, -0.5, 1.01]),
    ("chat text response", "min_p", [0, 1], [-0.01, 1.01]),
    ("chat text response", "presence_penalty", [-2, 2], [-2.01, 2.01]),
    ("chat text response", "frequency_penalty", [-2, 2], [-2.01, 2.01]),
    ("chat text response", "top_k", [0, HUGE], [-1, HUGE + 1]),
    ("chat text response", "seed", [-(2**63), 2**64 - 1], [-(2**63) - 1]),
    ("chat text", "n", [1, 128], [0, 129, -1]),
    ("chat text", "max_tokens", [1, HUGE], [0, -1, HUGE + 1]),
    ("chat", "max_completion_tokens", [1, HUGE], [0, HUGE + 1]),
    ("response", "max_output_tokens", [1, HUGE], [0, HUGE + 1]),
    ("text", "logprobs", [0, 1, 5], [-1, 6]),
    ("response", "top_logprobs", [0, 20], [-1, 21]),
    ("embedding", "dimensions", [1, 4096], [0, -1]),
    ("text", "best_of", [1], [0, 2]),
    ("chat text", "stop", ["x", "x" * 256, ["x"] * 16], ["", "x" * 257, ["x"] * 17, ["x", ""]]),
    ("chat text", "logit_bias", [{"0": 100, "4294967295": -100}], [{"0": 100.5}, {"0": -100.5}, {"4294967296": 1}]),
    ("chat text", "logit_bias", [{str(id): 1 for id in range(1024)}], [{str(id): 1 for id in range(1025)}]),
    ("chat text", "logit_bias", [{"1234567890": 1}], [{"": 1}, {"-1": 1}, {"x": 1}, {"00000000001": 1}]),
    ("text", "prompt", ["x", [0, 2**32 - 1], ["x"] * 128, [[1], "x"]], ["", [], [-1], [2**32], [[]], ["x", ""]]),
    ("text", "prompt", [["x", [1, 2]]], [["x"] * 129, ["x", 1], [1, [2]]]),
    ("embedding", "input", ["x", [0, 2**32 - 1], ["x"] * 2048, [[1], [2]]], ["", [], [-1], [2**32], ["x"] * 2049]),
    ("embedding", "input", [["x", "y"]], [["x", [1]], ["x", 1], [[1], 1], [[1], []], ["x", ""]]),
    ("embedding", "encoding_format", ["float", "base64", None], ["int8"]),
    ("chat", "tools", [[tool(f"f{n}") for n in range(MAX_TOOLS)]], [[tool(f"f{n}") for n in range(MAX_TOOLS + 1)]]),
    ("chat", "response_format", [json_format(65536)], [json_format(65537), {"type": "xml"}, {"type": "json_schema"}]),
    ("response", "text", [flat_format(65536)], []),
    ("chat", "service_tier", ["auto", "default"], ["flex"]),
    ("chat", "store", [False, None], [True]),
    ("response", "store", [False, None], [True]),
    ("response", "background", [False], [True]),
    ("response", "truncation", ["disabled"], ["auto"]),
    ("response", "input", ["x", [HI]], ["", []]),
    ("response", "reasoning", [{"effort": "none"}, {"effort": None}, {"summary": None}], []),
]


def cases(which: int) -> list[Any]:
    return [
        pytest.param(route, field, value, id=f"{route}-{field}-{str(value)[:20]}")
        for routes, field, taken, refused in LIMITS
        for route in routes.split()
        for value in (taken, refused)[which]
    ]


@pytest.mark.parametrize(("route", "field", "value"), cases(0))
def test_the_last_value_of_a_field_is_taken(route: str, field: str, value: Any) -> None:
    check(route, {field: value})


@pytest.mark.parametrize(("route", "field", "value"), cases(1))
def test_the_next_value_is_refused_by_the_fields_name(route: str, field: str, value: Any) -> None:
    found = refused(route, {field: value})
    assert found.param is not None
    assert found.param.split("[")[0].split(".")[0] == field
    assert field in found.sentence


CLASHES: list[tuple[str, dict[str, Any], str]] = [
    ("chat", {"top_logprobs": 3}, "top_logprobs"),
    ("chat", {"logprobs": False, "top_logprobs": 3}, "top_logprobs"),
    ("chat", {"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    ("chat", {"logprobs": True, "top_logprobs": -1}, "top_logprobs"),
    ("chat", {"logprobs": True, "tools": [tool()]}, "logprobs"),
    ("chat", {"stop": "x", "tools": [tool()], "response_format": {"type": "json_object"}}, "stop"),
    ("chat", {"max_tokens": 3, "max_completion_tokens": 4}, "max_tokens"),
    ("chat", {"stream_options": {"include_usage": True}}, "stream_options"),
    ("text", {"stream_options": {}, "stream": False}, "stream_options"),
    ("response", {"stream_options": {}}, "stream_options"),
    ("chat", {"tool_choice": "required"}, "tool_choice"),
    ("chat", {"tools": [tool()], "tool_choice": "always"}, "tool_choice"),
    ("chat", {"tools": [tool("f"), tool("f")]}, "tools[1].function.name"),
    ("chat", {"tools": [tool("f g")]}, "tools[0].function.name"),
    ("chat", {"tools": [tool("f" * 65)]}, "tools[0].function.name"),
    ("chat", {"tools": [{"type": "custom", "custom": {}}]}, "tools[0]"),
    ("chat", {"tools": [{"type": "function"}]}, "tools[0]"),
    ("chat", {"tools": [tool() | {"custom": {}}]}, "tools[0]"),
    ("chat", {"tools": [tool()], "tool_choice": {"type": "function", "function": {"name": "g"}}}, "tool_choice"),
    ("chat", {"tools": [tool()], "tool_choice": {"type": "function"}}, "tool_choice"),
    (
        "chat",
        {
            "tools": [tool()],
            "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
        },
        "tool_choice",
    ),
    (
        "chat",
        {
            "tools": [tool()],
            "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [1]}},
        },
        "tool_choice",
    ),
    (
        "chat",
        {"response_format": {"type": "text", "json_schema": {"name": "x"}}},
        "response_format.json_schema",
    ),
    ("chat", {"messages": []}, "messages"),
    ("text", {"echo": True, "logprobs": 0}, "echo"),
    ("text", {"echo": True, "prompt": [1, 2]}, "echo"),
    ("text", {"echo": True, "prompt": ["x", [1]]}, "echo"),
    ("text", {"best_of": 1, "n": 2}, "best_of"),
    ("response", {"reasoning": {"effort": "high"}}, "reasoning.effort"),
    ("response", {"reasoning": {"summary": "auto"}}, "reasoning.summary"),
    ("response", {"text": {"verbosity": "low"}}, "text.verbosity"),
    ("response", {"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format.name"),
    ("response", {"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
    ("response", {"text": {"format": {"type": "xml"}}}, "text.format.type"),
    ("response", {"text": flat_format(65537)}, "text.format"),
    ("response", {"include": ["message.output_text.logprobs", "all"]}, "include[1]"),
    ("response", {"top_logprobs": 1, "tools": [{"type": "function", "name": "f"}]}, "top_logprobs"),
    ("response", {"tools": [{"type": "web_search"}]}, "tools[0]"),
    ("response", {"tools": [{"type": "function", "name": "f g"}]}, "tools[0].name"),
    ("response", {"tools": [{"type": "function", "name": "f", "defer_loading": True}]}, "tools[0].defer_loading"),
    ("response", {"tool_choice": {"type": "custom", "name": "f"}}, "tool_choice"),
    ("response", {"tool_choice": {"type": "function"}}, "tool_choice"),
    ("response", {"tool_choice": {"type": "allowed_tools", "tools": []}}, "tool_choice"),
]


@pytest.mark.parametrize(("route", "fields", "param"), CLASHES)
def test_what_does_not_go_together_is_refused_by_the_field_that_could_go(
    route: str, fields: dict[str, Any], param: str
) -> None:
    found = refused(route, fields)
    assert (param, True) == (found.param, param in found.sentence)


@pytest.mark.parametrize(
    ("route", "fields"),
    [
        ("chat", {"logprobs": False, "top_logprobs": 0}),
        ("chat", {"max_tokens": 3, "max_completion_tokens": 3}),
        ("chat", {"stream": True, "stream_options": {}}),
        ("chat", {"tools": [], "tool_choice": "auto"}),
        ("chat", {"tools": None, "tool_choice": "none"}),
        ("chat", {"stop": "x", "tools": [tool()]}),
        ("chat", {"stop": "x", "response_format": {"type": "json_object"}}),
        ("chat", {"tools": [tool("f" * 64)]}),
        ("text", {"echo": True}),
        ("text", {"echo": False, "logprobs": 2}),
        ("text", {"echo": False, "prompt": [1]}),
        ("text", {"best_of": 2, "n": 2}),
        ("response", {"stream": True, "stream_options": {"include_obfuscation": True}}),
        ("response", {"text": {"verbosity": "medium"}}),
        ("response", {"tools": [{"type": "function", "name": "f", "defer_loading": False}]}),
        ("response", {"include": ["reasoning.encrypted_content"]}),
    ],
)
def test_what_asks_for_nothing_more_goes_together_with_anything(route: str, fields: dict[str, Any]) -> None:
    check(route, fields)


# what is made of them


@pytest.mark.parametrize(
    ("route", "fields", "scores"),
    [
        ("chat", {}, None),
        ("chat", {"logprobs": False}, None),
        ("chat", {"logprobs": True}, 0),
        ("chat", {"logprobs": True, "top_logprobs": 4}, 4),
        ("text", {}, None),
        ("text", {"logprobs": 0}, 0),
        ("response", {}, None),
        ("response", {"top_logprobs": 0}, None),
        ("response", {"top_logprobs": 4}, 4),
        ("response", {"include": ["message.output_text.logprobs"]}, 0),
        ("response", {"include": ["web_search_call.results"]}, None),
    ],
)
def test_log_probabilities_are_given_where_they_are_asked_for(
    route: str, fields: dict[str, Any], scores: int | None
) -> None:
    assert scores == check(route, fields).scores


@pytest.mark.parametrize(
    ("route", "fields", "most", "called"),
    [
        ("chat", {}, 0, "max_tokens"),
        ("chat", {"max_tokens": 7}, 7, "max_tokens"),
        ("chat", {"max_completion_tokens": 7}, 7, "max_completion_tokens"),
        ("text", {}, 16, "max_tokens"),
        ("text", {"max_tokens": 7}, 7, "max_tokens"),
        ("response", {}, 0, "max_output_tokens"),
        ("response", {"max_output_tokens": 7}, 7, "max_output_tokens"),
    ],
)
def test_an_answer_is_as_long_as_is_said_or_as_the_route_has_it(
    route: str, fields: dict[str, Any], most: int, called: str
) -> None:
    asked = check(route, fields)
    assert (most, called) == (asked.max_tokens, asked.budget_field)


@pytest.mark.parametrize(
    ("fields", "or_text", "or_json", "most"),
    [
        ({}, True, False, MAX_CALLS),
        ({"tool_choice": "auto"}, True, False, MAX_CALLS),
        ({"tool_choice": "required"}, False, False, MAX_CALLS),
        ({"parallel_tool_calls": True}, True, False, MAX_CALLS),
        ({"parallel_tool_calls": False}, True, False, 1),
        ({"response_format": {"type": "json_object"}}, False, True, MAX_CALLS),
        ({"response_format": {"type": "json_object"}, "tool_choice": "required"}, False, False, MAX_CALLS),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, False, False, MAX_CALLS),
    ],
)
def test_an_answer_may_be_text_or_the_form_that_was_asked_for_unless_it_must_be_a_call(
    fields: dict[str, Any], or_text: bool, or_json: bool, most: int
) -> None:
    asked = check("chat", {"tools": [tool()], **fields})
    assert asked.constraint is not None
    found = asked.constraint
    assert (or_text, or_json, most) == (found.or_text, bool(found.or_json), found.most)
    assert ("f",) == asked.calls


@pytest.mark.parametrize(("mode", "or_text"), [("auto", True), ("required", False)])
def test_tools_that_are_allowed_are_the_only_ones_and_their_mode_says_whether_one_is_called(
    mode: str, or_text: bool
) -> None:
    allowed = {"mode": mode, "tools": [tool("g")]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}
    asked = check("chat", {"tools": [tool("f"), tool("g")], "tool_choice": choice})
    flat = check(
        "response",
        {
            "tools": [{"type": "function", "name": "f"}, {"type": "function", "name": "g"}],
            "tool_choice": {"type": "allowed_tools", "mode": mode, "tools": [{"type": "function", "name": "g"}]},
        },
    )
    for found in (asked, flat):
        assert (("g",), or_text) == (found.calls, found.constraint.or_text)


def test_a_choice_of_none_leaves_tools_out() -> None:
    asked = check("chat", {"tools": [tool()], "tool_choice": "none"})
    assert ((), None, 1) == (asked.calls, asked.constraint, len(asked.chat))


def test_a_function_takes_what_its_schema_says_and_nothing_where_it_has_none() -> None:
    asked = check("chat", {"tools": [tool()]})
    schema = json.loads(asked.constraint.json_schema)
    assert {"name": {"const": "f"}, "arguments": {"type": "object", "additionalProperties": False}} == (
        schema["properties"]
    )
    two = check("chat", {"tools": [tool(), tool("g", parameters={"type": "object"})]})
    calls = json.loads(two.constraint.json_schema)["anyOf"]
    assert [{"const": "f"}, {"const": "g"}] == [call["properties"]["name"] for call in calls]


@pytest.mark.parametrize(("count", "at"), [(1, "#/properties/arguments"), (2, "#/anyOf/1/properties/arguments")])
def test_a_reference_within_a_functions_parameters_is_led_to_where_they_stand(count: int, at: str) -> None:
    parameters: dict[str, Any] = {
        "properties": {"a": [{"$ref": "#/$defs/x"}], "b": {"$ref": "other.json"}},
        "$defs": {"x": {}},
    }
    tools = [tool("f"), tool("g", parameters=parameters)][-count:]
    schema = json.loads(check("chat", {"tools": tools}).constraint.json_schema)
    call = schema if count == 1 else schema["anyOf"][1]
    found = call["properties"]["arguments"]["properties"]
    assert {"a": [{"$ref": f"{at}/$defs/x"}], "b": {"$ref": "other.json"}} == found


@pytest.mark.parametrize(("kind", "schema"), [("text", None), ("json_object", '{"type":"object"}')])
def test_a_format_without_a_schema_is_any_text_or_any_object(kind: str, schema: str | None) -> None:
    for asked in (
        check("chat", {"response_format": {"type": kind}}),
        check("response", {"text": {"format": {"type": kind}}}),
    ):
        assert schema == (asked.constraint.json_schema if asked.constraint else None)
    assert check("response", {"text": {}}).constraint is None


def test_a_schema_that_is_left_out_is_any_object_and_an_empty_one_is_anything() -> None:
    left_out = {"type": "json_schema", "json_schema": {"name": "x"}}
    assert '{"type":"object"}' == check("chat", {"response_format": left_out}).constraint.json_schema
    empty: dict[str, Any] = {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}
    assert "{}" == check("chat", {"response_format": empty}).constraint.json_schema


def test_a_seed_below_nothing_is_counted_from_the_top() -> None:
    assert [2**64 - 1, 5, None] == [check("chat", fields).sampling.seed for fields in ({"seed": -1}, {"seed": 5}, {})]


def test_token_ids_that_the_model_could_not_hold_are_refused_and_texts_are_left_to_it() -> None:
    asked = check("embedding", {"input": [[1], [1, 2, 3]]})
    check_length(asked, 3)
    check_length(check("embedding", {"input": "a b c d"}), 1)
    with pytest.raises(Refused) as caught:
        check_length(asked, 2)
    assert (400, "context_length_exceeded", "input") == (
        caught.value.status,
        caught.value.code,
        caught.value.param,
    )
    assert caught.value.sentence == "`input[1]` has 3 tokens; model 'm' takes at most 2."


# several choices


def text_of(prompts: list[Any], n: int, **more: Any) -> InferenceRequest:
    asked: InferenceRequest = check("text", {"prompt": prompts, "n": n, **more})
    return asked


def test_each_prompt_has_its_choices_one_after_the_other() -> None:
    found = split_choices(text_of(["a", [1, 2], "c"], 2), 10, 0)
    assert [("a", ()), ("a", ()), (None, (1, 2)), (None, (1, 2)), ("c", ()), ("c", ())] == [
        (one.text, tuple(one.tokens)) for one in found
    ]


def test_a_seed_is_counted_up_from_choice_to_choice_and_drawn_where_none_is_given() -> None:
    assert [5, 6, 7] == [one.sampling.seed for one in split_choices(text_of(["a"], 3, seed=5), 10, 100)]
    assert [None, 101, 102] == [one.sampling.seed for one in split_choices(text_of(["a"], 3), 10, 100)]
    last = 2**64 - 1
    assert [last, 0] == [one.sampling.seed for one in split_choices(text_of(["a"], 2, seed=last), 10, 0)]


def test_a_request_of_one_choice_stays_as_it_is() -> None:
    asked = text_of(["a"], 1)
    assert [asked] == split_choices(asked, 10**9, 0)


@pytest.mark.parametrize(
    ("prompts", "n", "size", "param"),
    [
        (1, MAX_CHOICES, 10, None),
        (2, MAX_CHOICES // 2, 10, None),
        (2, MAX_CHOICES // 2 + 1, 10, "n"),
        (MAX_CHOICES, 1, 10, None),
        (2, 1, MAX_BYTES // 2, None),
        (2, 1, MAX_BYTES // 2 + 1, "prompt"),
        (1, 2, MAX_BYTES // 2 + 1, "n"),
    ],
)
def test_so_many_choices_and_bytes_are_taken_in_all(prompts: int, n: int, size: int, param: str | None) -> None:
    asked = text_of(["a"] * prompts, n)
    if param is None:
        assert prompts * n == len(split_choices(asked, size, 0))
        return
    with pytest.raises(Refused) as caught:
        split_choices(asked, size, 0)
    assert (400, param, "out_of_range") == (caught.value.status, caught.value.param, caught.value.code)


# what is said of it

LONG = "x" * 500
REPEATED: list[tuple[str, dict[str, Any], int]] = [
    ("chat", {"messages": [{"role": LONG, "content": "hi"}]}, 40),
    ("chat", {"messages": [{"role": "user", "content": [{"type": LONG}]}]}, 40),
    ("chat", {"tools": [{"type": LONG}]}, 40),
    ("chat", {"tools": [tool(LONG)]}, 72),
    ("chat", {"tools": [tool()], "tool_choice": LONG}, 40),
    ("chat", {"tools": [tool()], "tool_choice": {"type": "function", "function": {"name": LONG}}}, 64),
    ("chat", {"response_format": {"type": LONG}}, 40),
    ("chat", {"logit_bias": {LONG: 1}}, 40),
    ("response", {"include": [LONG]}, 64),
    ("response", {"input": [{"role": LONG, "content": "hi"}]}, 40),
    ("response", {"input": [{"type": LONG}]}, 40),
    ("response", {"tools": [{"type": LONG}]}, 40),
    ("embedding", {"encoding_format": LONG}, 64),
]


@pytest.mark.parametrize(("route", "fields", "bound"), REPEATED)
def test_a_refusal_repeats_so_much_of_what_was_sent_and_no_more(route: str, fields: dict[str, Any], bound: int) -> None:
    assert repr("x" * bound) in refused(route, fields).sentence


def test_a_number_is_repeated_with_so_many_digits_and_no_more() -> None:
    given = -(10**60)
    assert f"`seed` is {str(given)[:40]}; it must be " in refused("chat", {"seed": given}).sentence
