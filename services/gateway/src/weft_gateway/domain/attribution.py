"""Attribution: whom a request is for and what it belongs to, as the client says it for its own books.

`metadata`, `user`, `safety_identifier` and `prompt_cache_key`, within the limits of OpenAI's API reference.
"""

import hmac
from hashlib import sha256
from typing import NamedTuple

from weft_gateway.domain.refused import Refused

MAX_PAIRS = 16
MAX_NAME = 64
MAX_VALUE = 512
MAX_SAFETY_IDENTIFIER = 128
MAX_IDENTIFIER = 512
"""Of a `user` and a `prompt_cache_key`, in characters: the reference names no bound."""
DIGEST_CHARS = 32
"""Of a person's digest: 128 bits."""


class Attribution(NamedTuple):
    """It changes no answer, stands in no event, and is kept only where a setting says so."""

    metadata: tuple[tuple[str, str], ...] = ()
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None


def attribution_of(
    *,
    metadata: dict[str, str] | None = None,
    user: str | None = None,
    safety_identifier: str | None = None,
    prompt_cache_key: str | None = None,
) -> Attribution:
    """The fields of a body, checked. Raises Refused."""
    pairs = metadata or {}
    if len(pairs) > MAX_PAIRS:
        raise _too_much("metadata", f"has {len(pairs)} pairs; at most {MAX_PAIRS} are taken")
    for name, value in pairs.items():
        if len(name) > MAX_NAME:
            raise _too_much("metadata", f"has a key of {len(name)} characters; at most {MAX_NAME} are taken")
        if len(value) > MAX_VALUE:
            raise _too_much("metadata", f"has a value of {len(value)} characters; at most {MAX_VALUE} are taken")
    for field, text, most in (
        ("user", user, MAX_IDENTIFIER),
        ("safety_identifier", safety_identifier, MAX_SAFETY_IDENTIFIER),
        ("prompt_cache_key", prompt_cache_key, MAX_IDENTIFIER),
    ):
        if text is not None and len(text) > most:
            raise _too_much(field, f"has {len(text)} characters; at most {most} are taken")
    return Attribution(tuple(pairs.items()), user, safety_identifier, prompt_cache_key)


def log_attributes(attribution: Attribution, key: bytes) -> dict[str, str]:
    """What a log line and a span may show of it: who it is for as a keyed digest, the rest as it was given."""
    found = {f"metadata.{name}": value for name, value in attribution.metadata}
    for field, person in (("user", attribution.user), ("safety_identifier", attribution.safety_identifier)):
        if person is not None:
            found[field] = hmac.new(key, person.encode("utf-8", "surrogatepass"), sha256).hexdigest()[:DIGEST_CHARS]
    if attribution.prompt_cache_key is not None:
        found["prompt_cache_key"] = attribution.prompt_cache_key
    return found


def _too_much(field: str, what: str) -> Refused:
    return Refused(400, f"`{field}` {what}.", param=field, code="out_of_range")
