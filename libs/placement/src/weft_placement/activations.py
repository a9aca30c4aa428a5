"""What computing one step takes beside weights and cache, where it is more than an engine's overhead counts anyway.

Of llama.cpp, as its log told it of models of 256 to 2,048 values a token, 1,024 to 32,768 tokens of context and steps
of 128 to 512 tokens (`bench/claims.py`): 4 bytes of at most 5 values between layers and 3 inside of one, and a mask of
2 bytes for each token of the context, once more where layers have a window; without flash attention the scores of
all heads in 4 bytes.
"""

from typing import Final

from weft_contracts.engines import HeaderClaim
from weft_contracts.facts.values import ModelSpec

_VALUE_BYTES: Final = 4
_MASK_BYTES: Final = 2
_BETWEEN, _INSIDE = 5, 3
_FLASH: Final = "flash_attention"


def step_tokens(spec: ModelSpec, formula: HeaderClaim) -> int:
    """Tokens that the engine computes in one step at most."""
    given = spec.engine_args.get(formula.step_argument, formula.step_tokens) if formula.step_argument else 0
    return given if isinstance(given, int) and not isinstance(given, bool) else formula.step_tokens


def step_bytes(spec: ModelSpec, formula: HeaderClaim) -> int:
    """Bytes that computing one step takes; 0 where the header tells no widths or the formula doesn't count them."""
    shape = spec.weights.shape
    if shape is None or not shape.width or not formula.step_bytes:
        return 0
    values = _VALUE_BYTES * (_BETWEEN * shape.width + _INSIDE * shape.inner)
    masks = _MASK_BYTES * spec.context_tokens * (2 if shape.window_tokens else 1)
    scores = _VALUE_BYTES * spec.weights.heads * spec.context_tokens if spec.engine_args.get(_FLASH) is False else 0
    return step_tokens(spec, formula) * (values + masks + scores)


def extra_activations(formula: HeaderClaim, *specs: ModelSpec) -> int:
    """Bytes on each device beyond those that its overhead counts, of all models that the engine runs side by side."""
    return max(0, sum(step_bytes(spec, formula) for spec in specs) - formula.step_bytes)
