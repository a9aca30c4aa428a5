"""What bodies of `/tokenize` and `/detokenize` may say."""

import json
from typing import Any

import pytest
from weft_gateway.domain.inference_request import Message
from weft_gateway.domain.openai.chat import MAX_TEMPLATE_KWARGS
from weft_gateway.domain.openai.tokenizing import (
    TokenizeRequest,
    check_detokenize,
    check_tokenize,
    detokenize_answer,
    tokenize_answer,
)
from weft_gateway.domain.refused import Refused

HELLO = [{"role": "user", "content": "Hello"}]
TOOLS = [{"type": "function", "function": {"name": "look"}}]


def tokenize(**fields: Any) -> TokenizeRequest:
    return check_tokenize(json.dumps({"model": "m", **fields}).encode())


def refused(**fields: Any) -> tuple[int, str | None]:
    with pytest.raises(Refused) as error:
        tokenize(**fields)
    return error.value.status, error.value.param


def test_a_text_has_around_it_what_the_model_wants_unless_that_is_declined() -> None:
    assert TokenizeRequest("m", "Hello") == tokenize(prompt="Hello")
    assert TokenizeRequest("m", "Hello") == tokenize(prompt="Hello", add_special_tokens=True)
    assert TokenizeRequest("m", "", special=False) == tokenize(prompt="", add_special_tokens=False)


def test_a_chat_ends_with_the_beginning_of_an_answer_unless_that_is_declined() -> None:
    chat = (Message("user", "Hello"),)
    assert TokenizeRequest("m", chat=chat) == tokenize(messages=HELLO, add_special_tokens=False)
    assert TokenizeRequest("m", chat=chat, awaits=False, goes_on=True, variables=(("thinks", False),)) == tokenize(
        messages=HELLO,
        add_generation_prompt=False,
        continue_final_message=True,
        chat_template_kwargs={"thinks": False},
    )


def test_tools_are_told_as_chats_tell_them() -> None:
    asked = tokenize(messages=HELLO, tools=TOOLS)
    assert (True, "system", True) == (asked.tools, asked.chat[0].role, '{"name":"look"}' in asked.chat[0].content)


def test_a_field_is_named_by_what_was_given() -> None:
    assert ("prompt", "messages") == (tokenize(prompt="").field, tokenize(messages=HELLO).field)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"prompt": "x"}, ""),
        ({"messages": HELLO}, ""),
        ({"prompt": "x", "return_token_strs": True}, "return_token_strs"),
        ({"prompt": "x", "add_special_tokens": False}, "add_special_tokens"),
        ({"messages": HELLO, "add_generation_prompt": False}, "add_generation_prompt"),
        ({"messages": HELLO, "chat_template_kwargs": {"a": 1}}, "chat_template_kwargs"),
    ],
)
def test_what_no_engine_can_be_asked_is_known_by_its_field(fields: dict[str, Any], name: str) -> None:
    assert name == tokenize(**fields).only_here
    assert name == tokenize(**fields).to("other").only_here


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({}, "prompt"),
        ({"prompt": "x", "messages": HELLO}, "prompt"),
        ({"messages": []}, "messages"),
        ({"messages": HELLO, "add_special_tokens": True}, "add_special_tokens"),
        ({"messages": HELLO, "continue_final_message": True}, "continue_final_message"),
        ({"messages": HELLO, "chat_template": "{{ x }}"}, "chat_template"),
        ({"messages": HELLO, "mm_processor_kwargs": {"a": 1}}, "mm_processor_kwargs"),
        ({"prompt": "x", "tools": TOOLS}, "tools"),
        ({"prompt": "x", "chat_template_kwargs": {"a": 1}}, "chat_template_kwargs"),
        ({"messages": HELLO, "chat_template_kwargs": {"a": "x" * MAX_TEMPLATE_KWARGS}}, "chat_template_kwargs"),
        ({"prompt": 5}, "prompt"),
        ({"prompt": "x", "truncate": 3}, "truncate"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_field(fields: dict[str, Any], param: str) -> None:
    assert (400, param) == refused(**fields)


def test_variables_may_be_as_long_as_those_of_a_chat() -> None:
    room = MAX_TEMPLATE_KWARGS - len('{"a":""}')
    assert tokenize(messages=HELLO, chat_template_kwargs={"a": "x" * room}).variables
    assert (400, "chat_template_kwargs") == refused(messages=HELLO, chat_template_kwargs={"a": "x" * (room + 1)})


def test_ids_are_whole_numbers_from_zero_on() -> None:
    assert (0, 7) == check_detokenize(b'{"model": "m", "tokens": [0, 7]}').ids
    assert () == check_detokenize(b'{"model": "m", "tokens": []}').ids
    for wrong in (b"[-1]", b"[4294967296]", b'["a"]', b"[0.5]"):
        with pytest.raises(Refused):
            check_detokenize(b'{"model": "m", "tokens": ' + wrong + b"}")


def test_answers_are_as_vllms_server_writes_them() -> None:
    assert {"count": 2, "max_model_len": 9, "tokens": [4, 5], "token_strs": None} == json.loads(
        tokenize_answer([4, 5], 9, None)
    )
    assert ["a", "b"] == json.loads(tokenize_answer([4, 5], 9, ["a", "b"]))["token_strs"]
    assert {"prompt": "ab"} == json.loads(detokenize_answer("ab"))
