"""OpenAI's request fields that are taken without effect, and those that are refused unless neutral."""

from typing import Any

import msgspec

from weft_gateway.domain.refused import Refused

HARMLESS = (
    "user",
    "metadata",
    "store",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "parallel_tool_calls",
)
"""Accepted and without effect here: they speak of the caller's books, not of the answer."""


class Common(msgspec.Struct, forbid_unknown_fields=True):
    """What chat and text completions have in common. Types are checked here, ranges by `sampling`."""

    model: str
    stream: bool = False
    stream_options: "StreamOptions | None" = None
    max_tokens: int | None = None
    stop: str | list[str] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    ignore_eos: bool | None = None
    n: int | None = None
    logit_bias: Any = None
    user: Any = None
    metadata: Any = None
    store: Any = None
    service_tier: Any = None
    safety_identifier: Any = None
    prompt_cache_key: Any = None
    prompt_cache_retention: Any = None
    parallel_tool_calls: Any = None


class StreamOptions(msgspec.Struct, forbid_unknown_fields=True):
    """`include_obfuscation` is taken without effect."""

    include_usage: bool = False
    include_obfuscation: bool = False


def refuse_unless_neutral(body: Common, field: str, neutral: tuple[Any, ...], what: str) -> None:
    """Refuse a field that would change the answer and that no engine here can do. Raises Refused."""
    value = getattr(body, field)
    if value is not None and value not in neutral:
        raise Refused(400, f"`{field}` is not supported yet: {what}.", param=field, code="unsupported_parameter")
