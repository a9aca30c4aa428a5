"""OpenAI's request fields: those that both kinds of completion share, and those that are refused unless neutral."""

from typing import Any

import msgspec

from weft_gateway.domain.inference_request import Sampling
from weft_gateway.domain.refused import Refused

Neutral = tuple[str, tuple[Any, ...], str]
"""A field, the values of it that ask for nothing special, and why others are refused."""


class CommonFields(Sampling, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What chat and text completions have in common. Types are checked here, ranges by `ranges`."""

    model: str
    stream: bool | None = None
    stream_options: "StreamOptions | None" = None
    max_tokens: int | None = None
    stop: str | list[str] | None = None
    n: int | None = None
    logit_bias: dict[str, float] | None = None
    user: str | None = None


class StreamOptions(msgspec.Struct, forbid_unknown_fields=True):
    """`include_obfuscation` is taken without effect."""

    include_usage: bool = False
    include_obfuscation: bool = False


def refuse_unless_neutral(body: msgspec.Struct, fields: tuple[Neutral, ...], at: str = "") -> None:
    """Refuse fields that would change the answer and that no engine here can do. `at`: the body's place in another.

    Raises Refused.
    """
    for field, neutral, why in fields:
        value = getattr(body, field)
        if value is not None and value not in neutral:
            raise unsupported(f"{at}.{field}" if at else field, why)


def unsupported(field: str, why: str) -> Refused:
    """The refusal of a field that is known and that nothing here can honour."""
    return Refused(400, f"`{field}` is not supported: {why}.", param=field, code="unsupported_parameter")
