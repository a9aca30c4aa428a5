"""Several choices of one request, each a request of its own."""

import msgspec

from weft_gateway.domain.inference_request import InferenceRequest, Sampling
from weft_gateway.domain.refused import Refused

MAX_CHOICES = 128
"""Of one request, all prompts together: OpenAI's own bound of `n`."""
MAX_BYTES = 32 * 1024 * 1024
"""A body's bytes times its choices: each choice carries the prompt."""


def split_choices(request: InferenceRequest, size: int, draw: int) -> list[InferenceRequest]:
    """One request for each choice, prompt by prompt. `size`: the body's bytes; `draw`: 64 random bits.

    A seed is counted up from choice to choice, so that they differ and can be had again. Raises Refused.
    """
    count = request.n * (1 + len(request.more_prompts))
    if count == 1:
        return [request]
    field = "n" if request.n > 1 else "prompt"
    if count > MAX_CHOICES or count * size > MAX_BYTES:
        raise Refused(
            400,
            f"`{field}` asks for {count} choices of a body of {size} bytes; at most {MAX_CHOICES} are taken, and "
            f"{MAX_BYTES} bytes in all.",
            param=field,
            code="out_of_range",
        )
    found: list[InferenceRequest] = []
    for prompt in (None, *request.more_prompts):
        if prompt is None:
            one = request
        elif isinstance(prompt, str):
            one = msgspec.structs.replace(request, text=prompt, tokens=())
        else:
            one = msgspec.structs.replace(request, text=None, tokens=prompt)
        found += [msgspec.structs.replace(one, sampling=_seeded(request.sampling, i, draw)) for i in range(request.n)]
    return found


def _seeded(sampling: Sampling, choice: int, draw: int) -> Sampling:
    if choice == 0:
        return sampling
    seed = (draw if sampling.seed is None else sampling.seed) + choice
    return msgspec.structs.replace(sampling, seed=seed & 0xFFFF_FFFF_FFFF_FFFF)
