"""`POST /v1/responses`: OpenAI's body to a checked request. Nothing is stored, so nothing can be referred to."""

import msgspec

from weft_gateway.domain.inference_request import Constraint, InferenceRequest
from weft_gateway.domain.openai.decoding import checked
from weft_gateway.domain.openai.fields import (
    MODERATION,
    NO_SETTING,
    SERVICE_TIER,
    Neutral,
    attribution_in,
    refuse_unless_neutral,
    unsupported,
)
from weft_gateway.domain.openai.ranges import check_streamed, likeliest, sampling_of, token_budget
from weft_gateway.domain.openai.response_body import ResponseBody, TextFormat
from weft_gateway.domain.openai.response_echo import echo_of
from weft_gateway.domain.openai.response_format import asks_for_schema, plain_constraint, schema_text
from weft_gateway.domain.openai.response_items import messages_of_input
from weft_gateway.domain.openai.response_tools import nested_choice, nested_tools
from weft_gateway.domain.openai.tools import tools_of, with_tools
from weft_gateway.domain.refused import Refused

LOGPROBS = "message.output_text.logprobs"
INCLUDABLE = frozenset(
    {
        LOGPROBS,
        # sealed thoughts and hosted tools: no answer here has any, so there is nothing of it to include
        "reasoning.encrypted_content",
        "code_interpreter_call.outputs",
        "computer_call_output.output.image_url",
        "file_search_call.results",
        "message.input_image.image_url",
        "web_search_call.action.sources",
        "web_search_call.results",
    }
)
_NOT_STORED = "nothing is stored here"
_REFUSED: tuple[Neutral, ...] = (
    ("store", (False,), f"{_NOT_STORED}; leave it out, or send false"),
    (
        "previous_response_id",
        (),
        f"{_NOT_STORED}; send the earlier items as `input`"
        " (AI SDK: no providerOptions.openai.previousResponseId; LangChain: use_previous_response_id=False)",
    ),
    ("conversation", (), f"{_NOT_STORED}; send the conversation's items as `input`"),
    ("background", (False,), f"{_NOT_STORED} that could be fetched later; wait for the answer, or stream it"),
    ("prompt", (), "no prompts are kept here; send `instructions` and `input`"),
    ("context_management", ([],), "the input is taken as it is"),
    ("truncation", ("disabled",), "the input is taken as it is; send what the model's context holds"),
    SERVICE_TIER,
    MODERATION,
    ("image", (), "only text is taken"),
    ("access_programs", (), "there are none"),
)
_decoder = msgspec.json.Decoder(ResponseBody)


def check_response(body: bytes) -> InferenceRequest:
    """The request in a body. Raises Refused."""
    return checked(_decoder, body, _checked)


def _checked(found: ResponseBody) -> InferenceRequest:
    refuse_unless_neutral(found, _REFUSED)
    _check_settings(found)
    scores = _scores(found)
    messages = messages_of_input(found.input, found.instructions)
    constraint = None if found.text is None else _constraint(found.text.format)
    tools = tools_of(
        nested_tools(found.tools),
        nested_choice(found.tool_choice),
        parallel=found.parallel_tool_calls is not False,
        instead=constraint,
        name_field="name",
    )
    if tools is not None:
        if scores is not None:
            raise unsupported("top_logprobs", "together with `tools`")
        messages, constraint = with_tools(messages, tools), tools.constraint
    return InferenceRequest(
        model=found.model,
        chat=tuple(messages),
        stream=bool(found.stream),
        max_tokens=token_budget("max_output_tokens", found.max_output_tokens),
        budget_field="max_output_tokens",
        sampling=sampling_of(found),
        constraint=constraint,
        calls=() if tools is None else tools.names,
        scores=scores,
        response_echo=echo_of(found),
        attribution=attribution_in(found),
    )


def _check_settings(body: ResponseBody) -> None:
    for field, value in (body.reasoning or {}).items():
        if value is not None and (field, value) != ("effort", "none"):
            raise unsupported(f"reasoning.{field}", NO_SETTING)
    if body.text is not None and body.text.verbosity not in (None, "medium"):
        raise unsupported("text.verbosity", NO_SETTING)
    if body.stream_options is not None:
        check_streamed(body.stream)


def _scores(body: ResponseBody) -> int | None:
    """Of how many likeliest tokens log probabilities are wanted; None: of none."""
    for place, wanted in enumerate(body.include or ()):
        if wanted not in INCLUDABLE:
            known = ", ".join(sorted(INCLUDABLE))
            what = f"`include[{place}]` is {wanted[:64]!r}; it must be one of {known}."
            raise Refused(400, what, param=f"include[{place}]", code="invalid_value")
    top = likeliest(body.top_logprobs)
    return top if top or LOGPROBS in (body.include or ()) else None


def _constraint(format: TextFormat | None) -> Constraint | None:
    if format is None or not asks_for_schema("text.format", format.type):
        return plain_constraint(format.type if format is not None else "text")
    for field in ("name", "schema"):
        if getattr(format, field) is None:
            raise Refused(400, f"`text.format.{field}` is missing.", param=f"text.format.{field}", code="missing_field")
    return Constraint(schema_text("text.format", format.schema or {}))
