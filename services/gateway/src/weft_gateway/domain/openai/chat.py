"""`POST /v1/chat/completions`: OpenAI's body to a checked request."""

from typing import Any

import msgspec

from weft_gateway.domain.asked import Asked, Message
from weft_gateway.domain.openai.decoding import decode
from weft_gateway.domain.openai.fields import Common, refuse_unless_neutral
from weft_gateway.domain.openai.sampling import check_ranges, include_usage, seed, stops, token_budget
from weft_gateway.domain.refused import Refused

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_TOOLS = "no engine here calls tools"


class Turn(msgspec.Struct, forbid_unknown_fields=True):
    """One message. The fields after `content` are what OpenAI's own answers carry as null."""

    role: str
    content: str | list[dict[str, Any]] | None = None
    name: Any = None
    refusal: Any = None
    audio: Any = None
    annotations: Any = None
    tool_calls: Any = None
    tool_call_id: Any = None
    function_call: Any = None


class ChatBody(Common, forbid_unknown_fields=True, kw_only=True):
    """The body as OpenAI documents it."""

    messages: list[Turn]
    max_completion_tokens: int | None = None
    tools: Any = None
    tool_choice: Any = None
    functions: Any = None
    function_call: Any = None
    logprobs: Any = None
    top_logprobs: Any = None
    response_format: Any = None
    modalities: Any = None
    audio: Any = None
    prediction: Any = None
    reasoning_effort: Any = None
    verbosity: Any = None
    web_search_options: Any = None


_REFUSED: tuple[tuple[str, tuple[Any, ...], str], ...] = (
    ("tools", ([],), _TOOLS),
    ("tool_choice", ("none", "auto"), _TOOLS),
    ("functions", ([],), _TOOLS),
    ("function_call", ("none", "auto"), _TOOLS),
    ("logprobs", (False,), "log probabilities are not carried"),
    ("top_logprobs", (0,), "log probabilities are not carried"),
    ("response_format", ({"type": "text"},), 'only `{"type": "text"}` is answered'),
    ("modalities", (["text"],), "only text is answered"),
    ("audio", (), "only text is answered"),
    ("prediction", (), "predicted outputs are not used"),
    ("reasoning_effort", (), "models here have no such setting"),
    ("verbosity", (), "models here have no such setting"),
    ("web_search_options", (), "there is no web search"),
    ("logit_bias", ({},), "tokens can't be biased"),
)
_decoder = msgspec.json.Decoder(ChatBody)


def check_chat(body: bytes) -> Asked:
    """The request in a body. Raises Refused."""
    found = decode(_decoder, body)
    for field, neutral, what in _REFUSED:
        if getattr(found, field) is not None:
            refuse_unless_neutral(found, field, neutral, what)
    check_ranges(found)
    return Asked(
        model=found.model,
        chat=_messages(found.messages),
        stream=found.stream,
        include_usage=include_usage(found),
        max_tokens=_budget(found),
        stop=stops(found.stop),
        temperature=found.temperature,
        top_p=found.top_p,
        top_k=found.top_k,
        min_p=found.min_p,
        seed=seed(found.seed),
        presence_penalty=found.presence_penalty,
        frequency_penalty=found.frequency_penalty,
        ignore_end=bool(found.ignore_eos),
    )


def _messages(turns: list[Turn]) -> tuple[Message, ...]:
    if not turns:
        raise Refused(400, "`messages` is empty; give at least one message.", param="messages", code="empty")
    return tuple([_message(place, turn) for place, turn in enumerate(turns)])


def _message(place: int, turn: Turn) -> Message:
    at = f"messages[{place}]"
    role = _ROLES.get(turn.role)
    if role is None:
        hint = _TOOLS if turn.role in ("tool", "function") else "use system, developer, user or assistant"
        raise Refused(400, f"`{at}.role` is {turn.role!r}: {hint}.", param=f"{at}.role")
    for field in ("name", "audio", "tool_calls", "tool_call_id", "function_call", "refusal"):
        if getattr(turn, field):
            raise Refused(
                400, f"`{at}.{field}` is not supported yet.", param=f"{at}.{field}", code="unsupported_parameter"
            )
    content = turn.content
    if content is None:
        raise Refused(400, f"`{at}.content` is missing.", param=f"{at}.content", code="missing_field")
    return Message(role, content if isinstance(content, str) else _joined(at, content))


def _joined(at: str, parts: list[dict[str, Any]]) -> str:
    """The text of a content given in parts. Pictures, sound and files are refused."""
    texts: list[str] = []
    for place, part in enumerate(parts):
        where = f"{at}.content[{place}]"
        kind, text = part.get("type"), part.get("text")
        if kind != "text":
            raise Refused(
                400,
                f"`{where}` is of type {kind!r}; only text parts are supported yet.",
                param=where,
                code="unsupported_parameter",
            )
        if not isinstance(text, str) or set(part) - {"type", "text"}:
            raise Refused(400, f"`{where}` must be an object of `type` and `text`.", param=where)
        texts.append(text)
    if not texts:
        raise Refused(400, f"`{at}.content` is empty; give a string or text parts.", param=f"{at}.content")
    return "\n".join(texts)


def _budget(body: ChatBody) -> int:
    if body.max_completion_tokens is None:
        return token_budget("max_tokens", body.max_tokens)
    if body.max_tokens is not None and body.max_tokens != body.max_completion_tokens:
        raise Refused(400, "`max_tokens` and `max_completion_tokens` differ; give one of them.", param="max_tokens")
    return token_budget("max_completion_tokens", body.max_completion_tokens)
