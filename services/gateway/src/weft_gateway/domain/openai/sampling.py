"""Ranges of the fields that shape a draw; the source of the ranges is OpenAI's API reference."""

from typing import Any

from weft_gateway.domain.openai.fields import Common
from weft_gateway.domain.refused import Refused

MAX_STOPS = 16
MAX_STOP_CHARS = 256
_HUGE = 2**31 - 1
_RANGES: tuple[tuple[str, float, float, str], ...] = (
    ("temperature", 0.0, 2.0, "from 0 to 2"),
    ("min_p", 0.0, 1.0, "from 0 to 1"),
    ("presence_penalty", -2.0, 2.0, "from -2 to 2"),
    ("frequency_penalty", -2.0, 2.0, "from -2 to 2"),
    ("top_k", 0, _HUGE, "0 (no limit) or more"),
    ("seed", -(2**63), 2**64 - 1, "a 64-bit integer"),
)


def check_ranges(body: Common) -> None:
    """Refuse a number out of its range. Raises Refused."""
    for field, low, high, right in _RANGES:
        value: Any = getattr(body, field)
        if value is not None and not low <= value <= high:
            raise _out_of_range(field, value, right)
    if body.top_p is not None and not 0 < body.top_p <= 1:
        raise _out_of_range("top_p", body.top_p, "above 0 and at most 1")
    if body.n is not None and body.n != 1:
        if body.n < 1:
            raise _out_of_range("n", body.n, "1")
        raise Refused(
            400, f"`n` is {body.n}: only one choice a request is supported.", param="n", code="unsupported_parameter"
        )


def token_budget(field: str, value: int | None) -> int:
    """`max_tokens` as the engine takes it: 0 for none given. Raises Refused."""
    if value is None:
        return 0
    if not 1 <= value <= _HUGE:
        raise _out_of_range(field, value, "1 or more and at most the model's context")
    return value


def stops(value: str | list[str] | None) -> tuple[str, ...]:
    """Stop strings, none of them empty. Raises Refused."""
    if value is None:
        return ()
    found = (value,) if isinstance(value, str) else tuple(value)
    if len(found) > MAX_STOPS:
        raise Refused(400, f"`stop` has {len(found)} strings; at most {MAX_STOPS} are taken.", param="stop")
    for place, stop in enumerate(found):
        if not stop or len(stop) > MAX_STOP_CHARS:
            size = "is empty" if not stop else f"has {len(stop)} characters"
            raise Refused(400, f"`stop[{place}]` {size}; 1 to {MAX_STOP_CHARS} characters are taken.", param="stop")
    return found


def seed(value: int | None) -> int | None:
    """Any 64-bit integer, as the unsigned one that engines take."""
    return None if value is None else value & 0xFFFF_FFFF_FFFF_FFFF


def include_usage(body: Common) -> bool:
    """Whether a stream ends with its usage. Raises Refused for options without a stream."""
    if body.stream_options is None:
        return False
    if not body.stream:
        raise Refused(400, "`stream_options` is only taken together with `stream: true`.", param="stream_options")
    return body.stream_options.include_usage


def _out_of_range(field: str, value: float, right: str) -> Refused:
    return Refused(400, f"`{field}` is {str(value)[:40]}; it must be {right}.", param=field, code="out_of_range")
