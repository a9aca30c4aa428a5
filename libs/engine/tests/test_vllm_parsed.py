"""What is read of a request before vLLM's parsers see its answer."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import RequestRefused
from weft_engine.adapters.vllm_parsed import callable_in, told_apart, variables_of

LOOK: dict[str, Any] = {"name": "look", "description": "around {", "parameters": {"type": "object"}}
CALL = {"type": "object", "properties": {"name": {"const": "look"}, "arguments": {"type": "object"}}}
names = st.text("abcdefgh_", min_size=1, max_size=8)


def words_of(functions: list[dict[str, Any]]) -> str:
    return "\n".join(["You can call these tools:", *map(json.dumps, functions), "To call one, answer so."])


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.lists(st.fixed_dictionaries({"name": names}), min_size=1),
)
def test_words_about_tools_are_taken_off_the_chat_and_their_functions_kept(
    before: str, functions: list[dict[str, Any]]
) -> None:
    words = words_of(functions)
    content = f"{before}\n\n{words}" if before else words
    chat = pb.Chat(messages=[pb.Message(role="system", content=content), pb.Message(role="user", content="hi")])

    without, found = told_apart(chat, pb.Constraint(told=len(words)))

    assert [{"type": "function", "function": function} for function in functions] == found
    kept = [message.content for message in without.messages]
    assert ([before.rstrip("\n"), "hi"] if before.rstrip("\n") else ["hi"]) == kept
    assert content == chat.messages[0].content, "the request's own chat is as it was"


@pytest.mark.parametrize("told", [0, 5, 10_000])
def test_a_chat_stays_as_it_is_where_its_words_about_tools_cannot_be_read(told: int) -> None:
    chat = pb.Chat(messages=[pb.Message(role="system", content=words_of([LOOK]))])
    assert (chat, []) == told_apart(chat, pb.Constraint(told=told))


def test_only_calls_that_may_be_made_and_need_not_are_left_to_the_family_s_form() -> None:
    schema = json.dumps(CALL)
    free = pb.Submit(constraint=pb.Constraint(json_schema=schema, or_text=True))
    assert ["look"] == [each["function"]["name"] for each in callable_in(free)]
    must = pb.Submit(constraint=pb.Constraint(json_schema=schema))
    or_json = pb.Submit(constraint=pb.Constraint(json_schema=schema, or_json='{"type":"object"}'))
    no_call = pb.Submit(constraint=pb.Constraint(json_schema='{"type":"object"}', or_text=True))
    assert [[], [], [], []] == [callable_in(each) for each in (must, or_json, no_call, pb.Submit())]


def test_a_request_s_variables_go_before_the_spec_s_and_name_no_argument_of_the_rendering() -> None:
    spec = {"thinking": True, "style": "plain"}
    assert spec == variables_of(pb.Submit(), spec)
    assert {"thinking": False, "style": "plain"} == variables_of(pb.Submit(template_kwargs='{"thinking":false}'), spec)
    for wrong in ('{"tokenize": true}', "[]", "{", '"' + "x" * 70_000 + '"'):
        with pytest.raises(RequestRefused) as refused:
            variables_of(pb.Submit(template_kwargs=wrong), {})
        assert "template_kwargs" == refused.value.field
