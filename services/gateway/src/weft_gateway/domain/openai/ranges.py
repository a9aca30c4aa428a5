"""Ranges of OpenAI's shared fields, and the request that they make; the source of the ranges is its API reference."""

from typing import Any

from weft_gateway.domain.inference_request import InferenceRequest, Sampling
from weft_gateway.domain.openai.fields import CommonFields
from weft_gateway.domain.refused import Refused

MAX_STOPS = 16
MAX_STOP_CHARS = 256
MAX_BIASES = 1024
MAX_ID_DIGITS = 10
MAX_TOP_LOGPROBS = 20
_HUGE = 2**31 - 1
_RANGES: tuple[tuple[str, float, float, str], ...] = (
    ("temperature", 0.0, 2.0, "from 0 to 2"),
    ("min_p", 0.0, 1.0, "from 0 to 1"),
    ("presence_penalty", -2.0, 2.0, "from -2 to 2"),
    ("frequency_penalty", -2.0, 2.0, "from -2 to 2"),
    ("top_k", 0, _HUGE, "0 (no limit) or more"),
    ("seed", -(2**63), 2**64 - 1, "a 64-bit integer"),
)


def inference_request(body: CommonFields, *, max_tokens: int, **own: Any) -> InferenceRequest:
    """The request of a body; `own` are the fields of InferenceRequest that only one route has. Raises Refused."""
    if body.n is not None and not 1 <= body.n <= 128:
        raise out_of_range("n", body.n, "from 1 to 128")
    return InferenceRequest(
        model=body.model,
        n=body.n or 1,
        stream=bool(body.stream),
        include_usage=_include_usage(body),
        max_tokens=max_tokens,
        stop=_stops(body.stop),
        sampling=sampling_of(body),
        bias=_bias(body.logit_bias),
        **own,
    )


def token_budget(field: str, value: int | None) -> int:
    """`max_tokens` as the engine takes it: 0 for none given. Raises Refused."""
    if value is None:
        return 0
    if not 1 <= value <= _HUGE:
        raise out_of_range(field, value, "1 or more and at most the model's context")
    return value


def likeliest(top_logprobs: int | None) -> int:
    """Of how many likeliest tokens log probabilities are wanted. Raises Refused."""
    if top_logprobs is not None and not 0 <= top_logprobs <= MAX_TOP_LOGPROBS:
        raise out_of_range("top_logprobs", top_logprobs, f"from 0 to {MAX_TOP_LOGPROBS}")
    return top_logprobs or 0


def check_streamed(stream: bool | None) -> None:
    """`stream_options` are there: they are refused where nothing is streamed. Raises Refused."""
    if not stream:
        raise Refused(400, "`stream_options` is only taken together with `stream: true`.", param="stream_options")


def out_of_range(field: str, value: float, right: str) -> Refused:
    """The refusal of a number beyond what a field takes."""
    return Refused(400, f"`{field}` is {str(value)[:40]}; it must be {right}.", param=field, code="out_of_range")


def sampling_of(body: Sampling) -> Sampling:
    """A body's drawing. Its seed is any 64-bit integer, as the unsigned one that engines take. Raises Refused."""
    for field, low, high, right in _RANGES:
        value: Any = getattr(body, field)
        if value is not None and not low <= value <= high:
            raise out_of_range(field, value, right)
    if body.top_p is not None and not 0 < body.top_p <= 1:
        raise out_of_range("top_p", body.top_p, "above 0 and at most 1")
    drawing = {name: getattr(body, name) for name in Sampling.__struct_fields__}
    if body.seed is not None:
        drawing["seed"] = body.seed & 0xFFFF_FFFF_FFFF_FFFF
    return Sampling(**drawing)


def _stops(value: str | list[str] | None) -> tuple[str, ...]:
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


def _bias(value: dict[str, float] | None) -> tuple[tuple[int, float], ...]:
    if not value:
        return ()
    if len(value) > MAX_BIASES:
        raise Refused(
            400, f"`logit_bias` names {len(value)} tokens; at most {MAX_BIASES} are taken.", param="logit_bias"
        )
    found: list[tuple[int, float]] = []
    for id, bias in value.items():
        if not (id.isascii() and id.isdecimal() and len(id) <= MAX_ID_DIGITS and int(id) < 2**32):
            raise Refused(400, f"`logit_bias` names {id[:40]!r}; a token id is expected.", param="logit_bias")
        if not -100 <= bias <= 100:
            raise out_of_range("logit_bias", bias, "from -100 to 100")
        found.append((int(id), bias))
    return tuple(found)


def _include_usage(body: CommonFields) -> bool:
    if body.stream_options is None:
        return False
    check_streamed(body.stream)
    return body.stream_options.include_usage
