"""`POST /v1/completions`: OpenAI's body to a checked request."""

from typing import Any

import msgspec

from weft_gateway.domain.asked import Asked
from weft_gateway.domain.openai.decoding import decode
from weft_gateway.domain.openai.fields import Common, refuse_unless_neutral
from weft_gateway.domain.openai.sampling import check_ranges, include_usage, seed, stops, token_budget
from weft_gateway.domain.refused import Refused

DEFAULT_TOKENS = 16
"""OpenAI's own default on this route."""


class CompletionBody(Common, forbid_unknown_fields=True, kw_only=True):
    """The body as OpenAI documents it."""

    prompt: str | list[str | int | list[int]]
    best_of: Any = None
    echo: Any = None
    logprobs: Any = None
    suffix: Any = None


_REFUSED: tuple[tuple[str, tuple[Any, ...], str], ...] = (
    ("best_of", (1,), "only one choice a request is drawn"),
    ("echo", (False,), "the prompt is not repeated"),
    ("logprobs", (False,), "log probabilities are not carried"),
    ("suffix", ("",), "nothing is written into a gap"),
    ("logit_bias", ({},), "tokens can't be biased"),
)
_decoder = msgspec.json.Decoder(CompletionBody)


def check_completion(body: bytes) -> Asked:
    """The request in a body. Raises Refused."""
    found = decode(_decoder, body)
    for field, neutral, what in _REFUSED:
        if getattr(found, field) is not None:
            refuse_unless_neutral(found, field, neutral, what)
    check_ranges(found)
    text, tokens = _prompt(found.prompt)
    return Asked(
        model=found.model,
        text=text,
        tokens=tokens,
        stream=found.stream,
        include_usage=include_usage(found),
        max_tokens=token_budget("max_tokens", DEFAULT_TOKENS if found.max_tokens is None else found.max_tokens),
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


def _prompt(prompt: str | list[str | int | list[int]]) -> tuple[str | None, tuple[int, ...]]:
    """A text or token ids; a list of exactly one prompt is that prompt."""
    if isinstance(prompt, str):
        if not prompt:
            raise Refused(400, "`prompt` is empty; give a text.", param="prompt", code="empty")
        return prompt, ()
    if not prompt:
        raise Refused(400, "`prompt` is empty; give a text or token ids.", param="prompt", code="empty")
    ids = [item for item in prompt if isinstance(item, int)]
    if len(ids) == len(prompt):
        return None, _token_ids(ids)
    if len(prompt) > 1:
        raise Refused(
            400,
            f"`prompt` has {len(prompt)} prompts; one a request is supported.",
            param="prompt",
            code="unsupported_parameter",
        )
    only = prompt[0]
    return _prompt(only) if isinstance(only, str) else (None, _token_ids(only if isinstance(only, list) else ids))


def _token_ids(ids: list[int]) -> tuple[int, ...]:
    for place, id in enumerate(ids):
        if not 0 <= id < 2**32:
            raise Refused(400, f"`prompt[{place}]` is {id}; a token id is 0 or more.", param="prompt")
    if not ids:
        raise Refused(400, "`prompt` is empty; give a text or token ids.", param="prompt", code="empty")
    return tuple(ids)
