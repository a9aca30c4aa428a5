"""What a checked request says of itself: whether another replica may go on with it, and its fields' names."""

from typing import Any

import pytest
from weft_gateway.domain.inference_request import Constraint, InferenceRequest, Message, Sampling

SCHEMA = Constraint("{}")


def asked(**fields: Any) -> InferenceRequest:
    return InferenceRequest(model="toy", **fields)


@pytest.mark.parametrize(
    ("temperature", "constraint", "resumable"),
    [(0.0, None, True), (0.7, None, False), (None, None, False), (0.0, SCHEMA, False), (0.7, SCHEMA, False)],
)
def test_an_answer_goes_on_elsewhere_only_where_it_is_greedy_and_free_of_form(
    temperature: float | None, constraint: Constraint | None, resumable: bool
) -> None:
    assert resumable is asked(sampling=Sampling(temperature=temperature), constraint=constraint).resumable


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({}, ""),
        ({"scores": 0}, "logprobs"),
        ({"bias": ((1, 2.0),)}, "logit_bias"),
        ({"bias": ((1, 2.0),), "scores": 3}, "logprobs"),
        ({"constraint": SCHEMA}, "response_format"),
        ({"constraint": SCHEMA, "response_echo": b""}, "text.format"),
        ({"constraint": SCHEMA, "calls": ("f",)}, "tools"),
        ({"constraint": SCHEMA, "calls": ("f",), "response_echo": b""}, "tools"),
        ({"constraint": SCHEMA, "scores": 3}, "response_format"),
    ],
)
def test_what_an_older_engine_would_pass_over_is_named_as_the_client_wrote_it(
    fields: dict[str, object], name: str
) -> None:
    assert name == asked(**fields).shaping


@pytest.mark.parametrize(
    ("field", "chat", "completion", "response"),
    [
        ("prompt", "messages", "prompt", "input"),
        ("bias", "logit_bias", "logit_bias", "logit_bias"),
        ("scores", "logprobs", "logprobs", "top_logprobs"),
        ("max_tokens", "max_tokens", "max_tokens", "max_output_tokens"),
        ("ignore_end", "ignore_eos", "ignore_eos", "ignore_eos"),
        ("constraint", "response_format", "response_format", "text.format"),
        ("temperature", "temperature", "temperature", "temperature"),
        ("", None, None, None),
    ],
)
def test_an_engines_complaint_names_the_field_that_this_client_knows(
    field: str, chat: str | None, completion: str | None, response: str | None
) -> None:
    of_chat = asked(chat=(Message("user", "hi"),), constraint=SCHEMA)
    of_completion = asked(text="hi", constraint=SCHEMA)
    of_response = asked(
        chat=(Message("user", "hi"),), constraint=SCHEMA, response_echo=b"", budget_field="max_output_tokens"
    )
    assert (chat, completion, response) == (of_chat.named(field), of_completion.named(field), of_response.named(field))
