"""The official client against the built-in model on llama.cpp: all that the routes promise, and each kind of error."""

import json
import math
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from pydantic import BaseModel, Field, ValidationError
from weft_testing.story import MeshUnderTest

MODEL = "tiny"
FRANCE: list[Any] = [{"role": "user", "content": "What is the capital of France?"}]
PARIS = "The capital of France is Paris."
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"enum": ["Paris", "Tokyo"]},
                "days": {"type": "integer", "minimum": 1, "maximum": 7},
            },
            "required": ["city", "days"],
        },
    },
}


class Place(BaseModel):
    """What the answer must be. The little model fills it with nonsense, but of the right form."""

    country: str = Field(max_length=12)
    island: bool
    rank: int = Field(ge=1, le=99)


@pytest.fixture
def client(calm_mesh: MeshUnderTest) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{calm_mesh.url}/v1", api_key="none", max_retries=0, timeout=60) as client:
        yield client


def ask(client: openai.OpenAI, **fields: Any) -> Any:
    create: Any = client.chat.completions.create
    return create(**({"model": MODEL, "messages": FRANCE, "temperature": 0} | fields))


@pytest.mark.sabotage("deaf-to-stops")
def test_a_chat_whole_and_streamed_ends_at_its_stop_with_exact_usage(client: openai.OpenAI) -> None:
    # given a model that is listed, and what it answers
    assert MODEL in [model.id for model in client.models.list()]
    whole = ask(client)
    assert (PARIS, "stop") == (whole.choices[0].message.content, whole.choices[0].finish_reason)
    # when it is to stop before the city
    cut = ask(client, stop=[" Paris"])
    chunks = list(ask(client, stop=[" Paris"], stream=True, stream_options={"include_usage": True}))
    # then it does, whole and streamed, and says what it took
    assert "The capital of France is" == cut.choices[0].message.content
    assert cut.choices[0].message.content == "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert "stop" == chunks[-2].choices[0].finish_reason
    assert [] == chunks[-1].choices
    assert cut.usage.completion_tokens == chunks[-1].usage.completion_tokens < whole.usage.completion_tokens
    assert cut.usage.prompt_tokens == chunks[-1].usage.prompt_tokens == whole.usage.prompt_tokens
    assert cut.usage.total_tokens == cut.usage.prompt_tokens + cut.usage.completion_tokens


@pytest.mark.sabotage("hidden-scores")
def test_log_probabilities_stand_beside_the_tokens_in_both_forms(client: openai.OpenAI) -> None:
    answer = ask(client, logprobs=True, top_logprobs=2)
    scored = answer.choices[0].logprobs.content
    assert PARIS == "".join(entry.token for entry in scored)
    assert all(0 < math.exp(entry.logprob) <= 1 and 2 == len(entry.top_logprobs) for entry in scored)
    chunks = list(ask(client, logprobs=True, top_logprobs=2, stream=True))
    streamed = [e for c in chunks for choice in c.choices if choice.logprobs for e in choice.logprobs.content]
    assert [entry.token for entry in scored] == [entry.token for entry in streamed]

    # what the model's template makes of the question
    prompt = "<|im_start|>user\nwhat is the capital of france?<|im_end|>\n<|im_start|>assistant\n"
    text: Any = client.completions.create(model=MODEL, prompt=prompt, temperature=0, logprobs=1)
    legacy = text.choices[0].logprobs
    assert [entry.token for entry in scored] == legacy.tokens
    assert legacy.text_offset == [PARIS.index(token) for token in legacy.tokens]
    # and a bias decides what is drawn
    biased = ask(client, logit_bias={"5": 100}, max_tokens=3, logprobs=True)
    assert 1 == len({entry.token for entry in biased.choices[0].logprobs.content})
    assert biased.choices[0].message.content not in PARIS


@pytest.mark.sabotage("uncounted-choices")
def test_two_choices_are_drawn_apart_and_counted_together(client: openai.OpenAI) -> None:
    # given a prompt that the model was never trained on, so that a draw is a draw
    wild: dict[str, Any] = {"model": MODEL, "prompt": "kingdom of", "temperature": 2, "max_tokens": 24}
    wild["extra_body"] = {"top_k": 0, "min_p": 0}
    # when two choices are drawn from a seed, and each alone
    create: Any = client.completions.create
    both: Any = create(n=2, seed=3, **wild)
    singly: list[Any] = [create(seed=seed, **wild) for seed in (3, 4)]
    # then they are those, and count together, the prompt once
    assert [0, 1] == [choice.index for choice in both.choices]
    assert [alone.choices[0].text for alone in singly] == [choice.text for choice in both.choices]
    assert both.choices[0].text != both.choices[1].text
    assert singly[0].usage.prompt_tokens == both.usage.prompt_tokens
    assert sum(alone.usage.completion_tokens for alone in singly) == both.usage.completion_tokens
    # and a chat has as many as it asks for
    assert [PARIS] * 2 == [choice.message.content for choice in ask(client, n=2).choices]


@pytest.mark.sabotage("free-form")
def test_an_answer_fits_its_json_schema(client: openai.OpenAI) -> None:
    for seed in (1, 2):
        try:
            parsed: Any = client.chat.completions.parse(
                model=MODEL, messages=FRANCE, response_format=Place, seed=seed, temperature=1, max_tokens=200
            )
        except ValidationError as error:
            pytest.fail(f"what the client got doesn't fit: {error}")
        assert isinstance(parsed.choices[0].message.parsed, Place)


@pytest.mark.sabotage("unread-calls")
def test_a_tool_is_called_with_arguments_that_fit_and_its_result_is_taken(client: openai.OpenAI) -> None:
    # when a call is required
    answer = ask(client, tools=[TOOL], tool_choice="required", max_tokens=100)
    # then one is made that fits, whole and streamed
    assert "tool_calls" == answer.choices[0].finish_reason
    [call, *_] = answer.choices[0].message.tool_calls
    arguments = json.loads(call.function.arguments)
    assert "weather" == call.function.name
    assert arguments["city"] in ("Paris", "Tokyo")
    assert 1 <= arguments["days"] <= 7
    chunks = list(ask(client, tools=[TOOL], tool_choice="required", max_tokens=100, stream=True))
    parts = [d.tool_calls[0] for c in chunks for d in [c.choices[0].delta] if d.tool_calls]
    assert "weather" == parts[0].function.name
    assert arguments == json.loads("".join(part.function.arguments or "" for part in parts))
    # and its result may be sent back; a model that sees no need to call answers with text
    said: list[Any] = [
        *FRANCE,
        answer.choices[0].message,
        {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
    ]
    ended = ask(client, messages=said, tools=[TOOL], tool_choice="none", max_tokens=40)
    assert ended.choices[0].message.content


@pytest.mark.sabotage("stopped-calls")
def test_a_call_that_is_cut_is_a_call_so_far_and_its_json_is_no_text_that_stops_heed(client: openai.OpenAI) -> None:
    calling: dict[str, Any] = {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False}
    for budget in (1, 13, 26, 40):
        # when the budget ends within a call, and all its letters would stop a text
        choice = ask(client, **calling, max_tokens=budget, stop=["name", "weather", "city", "}"]).choices[0]
        # then the call is told as far as it came
        [call] = choice.message.tool_calls
        assert ("weather", None, "length") == (call.function.name, choice.message.content, choice.finish_reason)
        chunks = list(ask(client, **calling, max_tokens=budget, stop=["city"], stream=True))
        assert not any(chunk.choices[0].delta.content for chunk in chunks)
        assert "length" == chunks[-1].choices[0].finish_reason
        parts = [d.tool_calls[0] for c in chunks for d in [c.choices[0].delta] if d.tool_calls]
        assert call.function.arguments == "".join(part.function.arguments or "" for part in parts)
        assert budget < 40 or '{"city": "' in call.function.arguments


@pytest.mark.sabotage("taken-pictures")
def test_each_kind_of_error_is_the_clients_own_with_one_sentence(client: openai.OpenAI) -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "array", "uniqueItems": True}}}
    image = [{"type": "image_url", "image_url": {"url": "data:,"}}]
    cases: list[tuple[type[openai.APIStatusError], str, dict[str, Any]]] = [
        (openai.NotFoundError, "'gpt-9' does not exist", {"model": "gpt-9"}),
        (openai.BadRequestError, "`temperature` is 3", {"temperature": 3}),
        (openai.BadRequestError, "`audio` is not supported", {"audio": {"voice": "alloy", "format": "wav"}}),
        (openai.BadRequestError, "only text parts", {"messages": [{"role": "user", "content": image}]}),
        (openai.BadRequestError, "'uniqueItems' at # is not supported", {"response_format": schema}),
        (openai.BadRequestError, "the context holds", {"messages": [{"role": "user", "content": "word " * 3000}]}),
        (openai.BadRequestError, "`logit_bias` names token 99999", {"logit_bias": {"99999": 1}}),
        (
            openai.PermissionDeniedError,
            "may not call this gateway",
            {"extra_headers": {"Origin": "http://elsewhere.example"}},
        ),
        (openai.APIStatusError, "larger than", {"messages": [{"role": "user", "content": "x" * (9 << 20)}]}),
    ]
    for kind, words, fields in cases:
        with pytest.raises(kind) as refused:
            ask(client, **fields)
        body: Any = refused.value.body
        assert words.lower() in body["message"].lower(), body
    # and the next chat works
    assert PARIS == ask(client).choices[0].message.content
