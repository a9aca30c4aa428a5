"""`POST /v1/chat/completions`: OpenAI's body to a checked request."""

from typing import Any

import msgspec

from weft_gateway.domain.asked import Asked
from weft_gateway.domain.openai.decoding import decode, too_deep
from weft_gateway.domain.openai.fields import Common, Neutral, refuse_unless_neutral, unsupported
from weft_gateway.domain.openai.messages import Turn, messages_of
from weft_gateway.domain.openai.ranges import asked_of, out_of_range, token_budget
from weft_gateway.domain.openai.response_format import ResponseFormat, constraint_of
from weft_gateway.domain.openai.tools import Choice, Tool, tools_of, with_tools
from weft_gateway.domain.refused import Refused

MAX_TOP_LOGPROBS = 20
_FUNCTIONS = "it is deprecated; use `tools`"
_NO_SETTING = "models here have no such setting"


class ChatBody(Common, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body as OpenAI documents it."""

    messages: list[Turn]
    max_completion_tokens: int | None = None
    tools: list[Tool] | None = None
    tool_choice: str | Choice | None = None
    parallel_tool_calls: bool | None = None
    """Both values are kept: one answer makes at most one call."""
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
    # accepted without effect: they speak of the caller's books or of caches, not of the answer
    metadata: dict[str, str] | None = None
    store: bool | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: dict[str, Any] | None = None


_REFUSED: tuple[Neutral, ...] = (
    ("functions", ([],), _FUNCTIONS),
    ("function_call", ("none", "auto"), _FUNCTIONS),
    ("modalities", (["text"],), "only text is answered"),
    ("moderation", (), "nothing is moderated"),
    ("audio", (), "only text is answered"),
    ("prediction", (), "predicted outputs are not used"),
    ("reasoning_effort", ("none",), _NO_SETTING),
    ("verbosity", ("medium",), _NO_SETTING),
    ("web_search_options", (), "there is no web search"),
)
_decoder = msgspec.json.Decoder(ChatBody)


def check_chat(body: bytes) -> Asked:
    """The request in a body. Raises Refused."""
    try:
        return _checked(decode(_decoder, body))
    except RecursionError:  # of a schema that decoding just managed
        raise too_deep() from None


def _checked(found: ChatBody) -> Asked:
    refuse_unless_neutral(found, _REFUSED)
    messages = messages_of(found.messages)
    tools = tools_of(found.tools, found.tool_choice)
    constraint = constraint_of(found.response_format)
    scores = _scores(found)
    if tools is not None:
        if constraint is not None:
            raise unsupported("response_format", "together with `tools`")
        if scores is not None:
            raise unsupported("logprobs", "together with `tools`")
        messages, constraint = with_tools(messages, tools), tools.constraint
    return asked_of(
        found,
        max_tokens=_budget(found),
        chat=tuple(messages),
        constraint=constraint,
        calls=tools is not None,
        scores=scores,
    )


def _scores(body: ChatBody) -> int | None:
    top = body.top_logprobs
    if top is not None and not 0 <= top <= MAX_TOP_LOGPROBS:
        raise out_of_range("top_logprobs", top, f"from 0 to {MAX_TOP_LOGPROBS}")
    if body.logprobs:
        return top or 0
    if top:
        raise Refused(400, "`top_logprobs` is only taken together with `logprobs: true`.", param="top_logprobs")
    return None


def _budget(body: ChatBody) -> int:
    if body.max_completion_tokens is None:
        return token_budget("max_tokens", body.max_tokens)
    if body.max_tokens is not None and body.max_tokens != body.max_completion_tokens:
        raise Refused(400, "`max_tokens` and `max_completion_tokens` differ; give one of them.", param="max_tokens")
    return token_budget("max_completion_tokens", body.max_completion_tokens)
