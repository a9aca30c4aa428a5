"""`POST /v1/completions`: OpenAI's body to a checked request."""

import msgspec

from weft_gateway.domain.asked import Asked
from weft_gateway.domain.openai.decoding import decode
from weft_gateway.domain.openai.fields import Common, Neutral, refuse_unless_neutral, unsupported
from weft_gateway.domain.openai.ranges import asked_of, out_of_range, token_budget
from weft_gateway.domain.refused import Refused

DEFAULT_TOKENS = 16
"""OpenAI's own default on this route."""
MAX_LOGPROBS = 5
Prompt = str | tuple[int, ...]


class CompletionBody(Common, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body as OpenAI documents it."""

    prompt: str | list[str | int | list[int]]
    best_of: int | None = None
    echo: bool | None = None
    logprobs: int | None = None
    suffix: str | None = None


_REFUSED: tuple[Neutral, ...] = (("suffix", ("",), "nothing is written into a gap"),)
_decoder = msgspec.json.Decoder(CompletionBody)


def check_completion(body: bytes) -> Asked:
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
    return asked_of(
        found,
        max_tokens=token_budget("max_tokens", DEFAULT_TOKENS if found.max_tokens is None else found.max_tokens),
        text=first if isinstance(first, str) else None,
        tokens=() if isinstance(first, str) else first,
        more_prompts=tuple(more),
        scores=found.logprobs,
        echo=bool(found.echo),
    )


def _prompts(prompt: str | list[str | int | list[int]]) -> list[Prompt]:
    """One prompt or several, each a text or token ids."""
    if isinstance(prompt, str):
        return [_text("prompt", prompt)]
    ids = [item for item in prompt if isinstance(item, int)]
    if len(ids) == len(prompt):
        return [_token_ids("prompt", ids)]
    found: list[Prompt] = []
    for place, item in enumerate(prompt):
        at = f"prompt[{place}]"
        if isinstance(item, int):
            raise Refused(400, f"`{at}` is a number among prompts; give token ids as lists.", param="prompt")
        found.append(_text(at, item) if isinstance(item, str) else _token_ids(at, item))
    return found


def _text(at: str, text: str) -> str:
    if not text:
        raise Refused(400, f"`{at}` is empty; give a text.", param="prompt", code="empty")
    return text


def _token_ids(at: str, ids: list[int]) -> tuple[int, ...]:
    if not ids:
        raise Refused(400, f"`{at}` is empty; give a text or token ids.", param="prompt", code="empty")
    for place, id in enumerate(ids):
        if not 0 <= id < 2**32:
            raise Refused(400, f"`{at}[{place}]` is {id}; a token id is 0 or more.", param="prompt")
    return tuple(ids)
