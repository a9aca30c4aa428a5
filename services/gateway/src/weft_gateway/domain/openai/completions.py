"""`POST /v1/completions`: OpenAI's body to a checked request."""

import msgspec

from weft_gateway.domain.attribution import attribution_of
from weft_gateway.domain.choices import MAX_CHOICES
from weft_gateway.domain.inference_request import InferenceRequest
from weft_gateway.domain.openai.decoding import decode
from weft_gateway.domain.openai.fields import CommonFields, Neutral, refuse_unless_neutral, unsupported
from weft_gateway.domain.openai.ranges import inference_request, out_of_range, token_budget
from weft_gateway.domain.openai.text_or_tokens import checked_ids, checked_text
from weft_gateway.domain.refused import Refused

DEFAULT_TOKENS = 16
"""OpenAI's own default on this route."""
MAX_LOGPROBS = 5
Prompt = str | tuple[int, ...]


class CompletionBody(CommonFields, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body as OpenAI documents it."""

    prompt: str | list[str | int | list[int]]
    best_of: int | None = None
    echo: bool | None = None
    logprobs: int | None = None
    suffix: str | None = None


_REFUSED: tuple[Neutral, ...] = (("suffix", ("",), "nothing is written into a gap"),)
_decoder = msgspec.json.Decoder(CompletionBody)


def check_completion(body: bytes) -> InferenceRequest:
    """The request in a body. Raises Refused."""
    found = decode(_decoder, body)
    refuse_unless_neutral(found, _REFUSED)
    if found.best_of is not None and found.best_of != (found.n or 1):
        raise unsupported("best_of", "as many choices are drawn as are answered, so it must equal `n`")
    if found.logprobs is not None and not 0 <= found.logprobs <= MAX_LOGPROBS:
        raise out_of_range("logprobs", found.logprobs, f"from 0 to {MAX_LOGPROBS}")
    prompts = _prompts(found.prompt)
    if found.echo and found.logprobs is not None:
        raise unsupported("echo", "together with `logprobs`, since a prompt's tokens are not scored")
    if found.echo and not all(isinstance(prompt, str) for prompt in prompts):
        raise unsupported("echo", "a prompt of token ids can't be repeated as text")
    first, *more = prompts
    return inference_request(
        found,
        max_tokens=token_budget("max_tokens", DEFAULT_TOKENS if found.max_tokens is None else found.max_tokens),
        text=first if isinstance(first, str) else None,
        tokens=() if isinstance(first, str) else first,
        more_prompts=tuple(more),
        scores=found.logprobs,
        echo=bool(found.echo),
        attribution=attribution_of(user=found.user),
    )


def _prompts(given: str | list[str | int | list[int]]) -> list[Prompt]:
    """One prompt or several, each a text or token ids."""
    if isinstance(given, str):
        return [checked_text("prompt", "prompt", given)]
    ids = [item for item in given if isinstance(item, int)]
    if len(ids) == len(given):
        return [tuple(checked_ids("prompt", "prompt", ids))]
    if len(given) > MAX_CHOICES:
        what = f"`prompt` has {len(given)} prompts; at most {MAX_CHOICES} are taken at once."
        raise Refused(400, what, param="prompt", code="too_many")
    found: list[Prompt] = []
    for place, item in enumerate(given):
        at = f"prompt[{place}]"
        if isinstance(item, int):
            raise Refused(400, f"`{at}` is a number among prompts; give token ids as lists.", param="prompt")
        text = isinstance(item, str)
        found.append(checked_text("prompt", at, item) if text else tuple(checked_ids("prompt", at, item)))
    return found
