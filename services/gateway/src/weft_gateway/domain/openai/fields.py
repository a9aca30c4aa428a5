"""OpenAI's request fields: those that several routes share, and those that are refused unless neutral."""

from typing import Any, Protocol

import msgspec

from weft_gateway.domain.attribution import Attribution, attribution_of
from weft_gateway.domain.inference_request import Sampling
from weft_gateway.domain.refused import Refused

Neutral = tuple[str, tuple[Any, ...], str]
"""A field, the values of it that ask for nothing special, and why others are refused."""
NO_SETTING = "models here have no such setting"
SERVICE_TIER: Neutral = ("service_tier", ("auto", "default"), "there is one tier here; use auto or default")
"""Both are the one that there is."""
MODERATION: Neutral = ("moderation", (), "nothing is moderated")


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


class Attributed(Protocol):
    """A body that may say all that there is to say of whom it is for. One struct can't extend two, so each has them."""

    @property
    def metadata(self) -> dict[str, str] | None: ...
    @property
    def user(self) -> str | None: ...
    @property
    def safety_identifier(self) -> str | None: ...
    @property
    def prompt_cache_key(self) -> str | None: ...


def attribution_in(body: Attributed) -> Attribution:
    """What a body says of whom it is for. Raises Refused."""
    return attribution_of(
        metadata=body.metadata,
        user=body.user,
        safety_identifier=body.safety_identifier,
        prompt_cache_key=body.prompt_cache_key,
    )


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
