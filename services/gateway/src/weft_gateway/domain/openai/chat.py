"""`POST /v1/chat/completions`: OpenAI's body to a checked request."""

from typing import Any

import msgspec

from weft_gateway.domain.inference_request import InferenceRequest
from weft_gateway.domain.openai.decoding import checked
from weft_gateway.domain.openai.fields import (
    MODERATION,
    NO_SETTING,
    SERVICE_TIER,
    CommonFields,
    Neutral,
    attribution_in,
    refuse_unless_neutral,
    unsupported,
)
from weft_gateway.domain.openai.messages import Turn, messages_of
from weft_gateway.domain.openai.ranges import inference_request, likeliest, token_budget
from weft_gateway.domain.openai.response_format import ResponseFormat, constraint_of
from weft_gateway.domain.openai.tools import Choice, Tool, tools_of, with_tools
from weft_gateway.domain.refused import Refused

MAX_TEMPLATE_KWARGS = 16 * 1024
"""Characters of JSON."""
_FUNCTIONS = "it is deprecated; use `tools`"


class ChatBody(CommonFields, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body as OpenAI documents it."""

    messages: list[Turn]
    max_completion_tokens: int | None = None
    tools: list[Tool] | None = None
    tool_choice: str | Choice | None = None
    parallel_tool_calls: bool | None = None
    """Whether one answer may make several calls; by default it may."""
    logprobs: bool | None = None
    top_logprobs: int | None = None
    response_format: ResponseFormat | None = None
    functions: Any = None
    function_call: Any = None
    modalities: Any = None
    moderation: Any = None
    audio: Any = None
    prediction: Any = None
    reasoning_effort: Any = None
    verbosity: Any = None
    web_search_options: Any = None
    store: bool | None = None
    service_tier: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    """Variables of the model's chat template, as vLLM and SGLang take them."""
    # without effect on the answer: they speak of the caller's books or of caches
    metadata: dict[str, str] | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: dict[str, Any] | None = None


_REFUSED: tuple[Neutral, ...] = (
    ("functions", ([],), _FUNCTIONS),
    ("function_call", ("none", "auto"), _FUNCTIONS),
    ("modalities", (["text"],), "only text is answered"),
    MODERATION,
    ("audio", (), "only text is answered"),
    ("prediction", (), "predicted outputs are not used"),
    ("reasoning_effort", ("none",), NO_SETTING),
    ("verbosity", ("medium",), NO_SETTING),
    ("web_search_options", (), "there is no web search"),
    ("store", (False,), "answers are not stored"),
    SERVICE_TIER,
)
_decoder = msgspec.json.Decoder(ChatBody)


def check_chat(body: bytes) -> InferenceRequest:
    """The request in a body. Raises Refused."""
    return checked(_decoder, body, _checked)


def _checked(found: ChatBody) -> InferenceRequest:
    refuse_unless_neutral(found, _REFUSED)
    messages = messages_of(found.messages)
    constraint = constraint_of(found.response_format)
    tools = tools_of(
        found.tools, found.tool_choice, parallel=found.parallel_tool_calls is not False, instead=constraint
    )
    scores = _scores(found)
    if tools is not None:
        if scores is not None:
            raise unsupported("logprobs", "together with `tools`")
        if tools.constraint.or_json and found.stop:
            raise unsupported("stop", "together with `tools` and `response_format`")
        messages, constraint = with_tools(messages, tools), tools.constraint
    return inference_request(
        found,
        max_tokens=_budget(found),
        budget_field="max_tokens" if found.max_completion_tokens is None else "max_completion_tokens",
        chat=tuple(messages),
        constraint=constraint,
        calls=() if tools is None else tools.names,
        scores=scores,
        service_tier="" if found.service_tier is None else "default",
        template_kwargs=_template_kwargs(found.chat_template_kwargs),
        attribution=attribution_in(found),
    )


def _template_kwargs(given: dict[str, Any] | None) -> str:
    if not given:
        return ""
    text = msgspec.json.encode(given).decode()
    if len(text) > MAX_TEMPLATE_KWARGS:
        what = f"`chat_template_kwargs` has {len(text)} characters as JSON; at most {MAX_TEMPLATE_KWARGS} are taken."
        raise Refused(400, what, param="chat_template_kwargs", code="out_of_range")
    return text


def _scores(body: ChatBody) -> int | None:
    top = likeliest(body.top_logprobs)
    if body.logprobs:
        return top
    if top:
        raise Refused(400, "`top_logprobs` is only taken together with `logprobs: true`.", param="top_logprobs")
    return None


def _budget(body: ChatBody) -> int:
    if body.max_completion_tokens is None:
        return token_budget("max_tokens", body.max_tokens)
    if body.max_tokens is not None and body.max_tokens != body.max_completion_tokens:
        raise Refused(400, "`max_tokens` and `max_completion_tokens` differ; give one of them.", param="max_tokens")
    return token_budget("max_completion_tokens", body.max_completion_tokens)
