"""OpenAI's bodies: what is taken, and one sentence for what is not."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_gateway.domain.choices import split_choices
from weft_gateway.domain.inference_request import Message
from weft_gateway.domain.openai.chat import check_chat
from weft_gateway.domain.openai.completions import check_completion
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.submission import resumption, submission

HI = {"role": "user", "content": "hi"}


def chat(**fields: Any) -> bytes:
    return json.dumps({"model": "m", "messages": [HI]} | fields).encode()


def text(**fields: Any) -> bytes:
    return json.dumps({"model": "m", "prompt": "once"} | fields).encode()


def format_of(schema: Any) -> Any:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}


def tool_of(parameters: Any) -> Any:
    return {"type": "function", "function": {"name": "f", "parameters": parameters}}


def deep(body: bytes, levels: int) -> bytes:
    """The body with so many objects in one another where it holds `{"z": 0}`."""
    return body.replace(b'{"z": 0}', b'{"z":' * levels + b"0" + b"}" * levels)


def test_every_field_reaches_the_engine() -> None:
    asked = check_chat(
        chat(
            messages=[
                {"role": "developer", "content": "be kind"},
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            ],
            max_completion_tokens=5,
            stop="x",
            seed=-1,
            temperature=0,
            top_p=0.5,
            top_k=3,
            min_p=0.1,
            presence_penalty=1,
            frequency_penalty=-1,
            ignore_eos=True,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert (Message("system", "be kind"), Message("user", "a\nb")) == asked.chat
    assert asked.resumable
    assert asked.include_usage
    submit = submission(asked, "c")
    assert ["be kind", "a\nb"] == [message.content for message in submit.chat.messages]
    assert (5, ["x"], 2**64 - 1) == (submit.max_tokens, list(submit.stop), submit.sampling.seed)
    assert submit.sampling.HasField("temperature")
    assert submit.sampling.ignore_end


def test_harmless_fields_and_neutral_values_are_taken() -> None:
    check_chat(
        chat(
            user="u",
            metadata={"a": "b"},
            store=False,
            n=1,
            tools=[],
            tool_choice="none",
            logprobs=False,
            response_format={"type": "text"},
            logit_bias=None,
            max_tokens=None,
            parallel_tool_calls=True,
        )
    )
    check_completion(text(best_of=1, echo=False, suffix=None, logprobs=None))


def test_an_assistants_own_answer_may_be_sent_back() -> None:
    said: dict[str, Any] = {"role": "assistant", "content": "x", "refusal": None, "annotations": [], "tool_calls": None}
    assert 2 == len(check_chat(chat(messages=[HI, said])).chat)


@pytest.mark.parametrize(
    ("body", "param", "words"),
    [
        (b"", None, "The body is empty"),
        (b"{", None, "The body is not JSON"),
        (b"[]", None, "The body is a list; it must be an object."),
        (b'{"messages":[]}', "model", "`model` is missing."),
        (b'{"model":"m"}', "messages", "`messages` is missing."),
        (chat(model=1), "model", "`model` is an integer; it must be a string."),
        (chat(messages=[]), "messages", "`messages` is empty; give at least one message."),
        (chat(messages=[{"content": "x"}]), "messages[0].role", "`messages[0].role` is missing."),
        (chat(messages=[{"role": "user"}]), "messages[0].content", "`messages[0].content` is missing."),
        (chat(messages=[{"role": "tool", "content": "x"}]), "messages[0].tool_call_id", "is missing"),
        (chat(messages=[{"role": "function", "content": "x"}]), "messages[0].role", "use `tools`"),
        (chat(messages=[{"role": "user", "content": [{"type": "image_url"}]}]), "messages[0].content[0]", "only text"),
        (chat(max_tokens=-1), "max_tokens", "`max_tokens` is -1; it must be 1 or more"),
        (chat(max_tokens=10**30), "max_tokens", "it must be 1 or more"),
        (chat(max_tokens="5"), "max_tokens", "`max_tokens` is a string; it must be an integer or null."),
        (chat(max_tokens=1, max_completion_tokens=2), "max_tokens", "differ"),
        (chat(temperature=3), "temperature", "`temperature` is 3.0; it must be from 0 to 2."),
        (chat(top_p=0), "top_p", "above 0 and at most 1"),
        (chat(stop=["a"] * 17), "stop", "at most 16"),
        (chat(stop=""), "stop", "`stop[0]` is empty; 1 to 256 characters are taken."),
        (chat(stop=["a", "b" * 257]), "stop", "`stop[1]` has 257 characters; 1 to 256 characters are taken."),
        (chat(n=0), "n", "from 1 to 128"),
        (chat(tools=[{"type": "custom", "custom": {}}]), "tools[0]", "only functions are called"),
        (chat(tool_choice="required"), "tool_choice", "without `tools`"),
        (chat(top_logprobs=3), "top_logprobs", "together with `logprobs: true`"),
        (chat(response_format={"type": "xml"}), "response_format.type", "json_object or json_schema"),
        (chat(response_format={"type": "json_schema"}), "response_format.json_schema", "is missing"),
        (chat(logit_bias={"a": 1}), "logit_bias", "a token id is expected"),
        (chat(logit_bias={"9" * 5000: 1}), "logit_bias", "a token id is expected"),
        (chat(temperature=0).replace(b"0}", b"1e400}"), "temperature", "`temperature` does not fit: number out of"),
        (chat(response_format={"type": "text", "json_schema": {"name": "x"}}), "response_format.json_schema", "only"),
        (chat(response_format=format_of({"title": "x" * 70_000})), "response_format", "at most 65536 are taken"),
        (chat(tools=[tool_of({"title": "x" * 70_000})]), "tools", "at most 65536 are taken"),
        *[(deep(chat(response_format=format_of({"z": 0})), by), None, "nested too deeply") for by in (5000, 100_000)],
        *[(deep(chat(tools=[tool_of({"z": 0})]), by), None, "nested too deeply") for by in (700, 5000)],
        (chat(stream_options={"include_usage": True}), "stream_options", "together with `stream: true`"),
        (chat(temprature=1), "temprature", "`temprature` is not a field that is known here; leave it out."),
    ],
)
def test_bad_chat_bodies_are_one_sentence(body: bytes, param: str | None, words: str) -> None:
    with pytest.raises(Refused) as refused:
        check_chat(body)
    assert 400 == refused.value.status
    assert param == refused.value.param
    assert words in refused.value.sentence
    assert 1 == refused.value.sentence.count("\n") + 1


def test_a_chat_without_messages_is_told_apart_by_its_code() -> None:
    with pytest.raises(Refused) as refused:
        check_chat(chat(messages=[]))
    assert (400, "messages", "empty") == (refused.value.status, refused.value.param, refused.value.code)


def test_a_prompt_is_a_text_or_token_ids() -> None:
    assert ("once", ()) == prompt_of("once")
    assert ("once", ()) == prompt_of(["once"])
    assert (None, (1, 2)) == prompt_of([1, 2])
    assert (None, (1, 2)) == prompt_of([[1, 2]])
    wrong: list[Any] = ["", [], [[]], ["a", ""], [1, "a"], [-1]]
    for bad in wrong:
        with pytest.raises(Refused) as refused:
            check_completion(text(prompt=bad))
        assert "prompt" == refused.value.param


def test_a_list_of_too_many_prompts_is_refused_before_each_is_looked_at() -> None:
    with pytest.raises(Refused, match="has 200 prompts; at most 128"):
        check_completion(text(prompt=[""] * 200))


def test_several_prompts_and_choices_are_each_a_request_with_a_seed_of_its_own() -> None:
    asked = check_completion(text(prompt=["a", [1, 2]], n=2, seed=5))
    each = split_choices(asked, 10, 99)
    assert [("a", ()), ("a", ()), (None, (1, 2)), (None, (1, 2))] == [(one.text, one.tokens) for one in each]
    assert [5, 6, 5, 6] == [one.sampling.seed for one in each]
    unseeded = split_choices(check_chat(chat(n=3)), 10, 99)
    assert [None, 100, 101] == [one.sampling.seed for one in unseeded]
    with pytest.raises(Refused, match="at most 128"):
        split_choices(check_completion(text(prompt=["a"] * 65, n=2)), 10, 0)
    with pytest.raises(Refused, match="33554432 bytes in all"):
        split_choices(check_chat(chat(n=100)), 1 << 20, 0)


def prompt_of(prompt: Any) -> tuple[str | None, tuple[int, ...]]:
    asked = check_completion(text(prompt=prompt))
    return asked.text, asked.tokens


def test_a_request_goes_on_with_what_is_left_of_its_budget() -> None:
    asked = check_chat(chat(max_tokens=5))
    submit = resumption(asked, "c", [1, 2], "ab")
    assert submit is not None
    assert (3, [1, 2], "ab") == (submit.max_tokens, list(submit.resume.output_ids), submit.resume.text_sent)
    assert resumption(asked, "c", [1, 2, 3, 4, 5], "abcde") is None


@given(st.binary(max_size=200))
def test_no_bytes_break_the_check(body: bytes) -> None:
    with pytest.raises(Refused):
        check_chat(body)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(["messages", "max_tokens", "stop", "temperature", "tools", "stream_options", "n"]), json_values)
def test_no_value_of_a_field_breaks_the_check(field: str, value: Any) -> None:
    with suppress(Refused):
        check_chat(chat(**{field: value}))
