"""What a response shows of its own request, as the API has it: made once, written with each of its states."""

from typing import Any

import msgspec

from weft_gateway.domain.openai.response_body import ResponseBody

MAX_SHOWN_BYTES = 64 * 1024
"""Of what may be long, each: a stream says it three times, and who sent it knows it."""
_encode = msgspec.json.Encoder().encode


def echo_of(body: ResponseBody) -> bytes:
    """The members of a response that follow from its request, each with a comma behind it.

    What was left out is shown as what holds then; null is the engine's own default, or nothing.
    """
    text, stored = body.text, {"background": False, "previous_response_id": None, "store": False}
    shown: dict[str, Any] = {
        **stored,
        "instructions": _unless_large(body.instructions, None),
        "max_output_tokens": body.max_output_tokens,
        "max_tool_calls": body.max_tool_calls,
        "metadata": body.metadata or {},
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "prompt_cache_key": body.prompt_cache_key,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": body.safety_identifier,
        "service_tier": "default",
        "temperature": body.temperature,
        "text": {"format": _format(body), "verbosity": (text.verbosity if text else None) or "medium"},
        "tool_choice": _choice(body.tool_choice),
        "tools": _unless_large(body.tools or [], []),
        "top_logprobs": body.top_logprobs or 0,
        "top_p": body.top_p,
        "truncation": "disabled",
        "user": body.user,
    }
    return _encode(shown)[1:-1] + b","


def _unless_large(value: Any, otherwise: Any) -> Any:
    encoded = _encode(value)
    return msgspec.Raw(encoded) if len(encoded) <= MAX_SHOWN_BYTES else otherwise


def _format(body: ResponseBody) -> Any:
    format = body.text.format if body.text else None
    if format is None:
        return {"type": "text"}
    given = {name: value for name, value in msgspec.structs.asdict(format).items() if value is not None}
    return _unless_large(given, {"type": format.type})


def _choice(choice: str | dict[str, Any] | None) -> Any:
    return _unless_large(choice, {**choice, "tools": []}) if isinstance(choice, dict) else choice or "auto"
