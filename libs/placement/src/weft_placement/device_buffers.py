"""What llama.cpp takes on an accelerator beside weights, cache, a step and what its log tells.

As NVIDIA's driver told it of an H100 (`bench/device_claims.py`), and as llama.cpp's code for CUDA has it: a cache
of another type is made f16 for a layer at a time; where flash attention has no kernel for a head's size or a type the
scores of all heads are kept in 32 bits; a draft model has a context of its own, with room of its own for cuBLAS.
"""

from typing import Final

from weft_contracts.engines import HeaderClaim
from weft_contracts.facts.values import ModelSpec, Weights

from weft_placement.activations import step_tokens

_MIB: Final = 1 << 20
_AS_IT_IS: Final = "f16"
"""The type of a cache that the kernels read as it lies there."""
_WITHOUT_KERNEL: Final = ("iq4_nl",)
_VALUE_BYTES: Final = 2
_SCORE_BYTES: Final = 4
_FLASH: Final = "flash_attention"
_ALIKE: Final = frozenset((40, 64, 72, 80, 96, 112, 128, 256, 512))
"""Sizes of a head that have a kernel where keys and values are of one size."""
_LATENT: Final = frozenset((320, 576))
"""Sizes of what latent attention keeps of a token that have one."""
_CUBLAS: Final = 32 * _MIB
_DRAFT: Final = 96 * _MIB


def device_buffers(spec: ModelSpec, formula: HeaderClaim, *, draft: bool) -> int:
    """Bytes on each accelerator; 0 for an engine whose steps its overhead counts."""
    if not formula.step_bytes:
        return 0
    return _widened(spec) + _scores(spec, formula) + (_DRAFT if draft else 0)


def _widened(spec: ModelSpec) -> int:
    """One layer's keys and values of another type in 16 bits, of all requests."""
    keys, values = _of_a_layer(spec.weights)
    wide = [
        size
        for size, type in ((keys, "cache_type_k"), (values, "cache_type_v"))
        if spec.engine_args.get(type, _AS_IT_IS) != _AS_IT_IS
    ]
    return sum(wide) * spec.context_tokens * spec.concurrency


def _scores(spec: ModelSpec, formula: HeaderClaim) -> int:
    """Of all heads, for a step's tokens with one request's context. What was switched off is counted as a step's."""
    weights = spec.weights
    without = any(spec.engine_args.get(type) in _WITHOUT_KERNEL for type in ("cache_type_k", "cache_type_v"))
    if spec.engine_args.get(_FLASH) is False or not weights.heads or (_has_kernel(weights) and not without):
        return 0
    return _SCORE_BYTES * weights.heads * step_tokens(spec, formula) * spec.context_tokens + _CUBLAS


def _has_kernel(weights: Weights) -> bool:
    """Whether there is flash attention for its heads; taken to be so where the header doesn't tell their size."""
    keys, values = _of_a_layer(weights)
    shape = weights.shape
    if not keys or shape is None or shape.state_bytes:
        return True  # no attention, or not in all layers: then the sizes of one are not known
    if not values:
        return keys // _VALUE_BYTES in _LATENT
    heads = max(1, weights.kv_heads)
    return keys == values and keys // (_VALUE_BYTES * heads) in _ALIKE


def _of_a_layer(weights: Weights) -> tuple[int, int]:
    """Bytes of one token's keys and values in a layer, in 16 bits."""
    shape, layers = weights.shape, max(1, weights.layers)
    if shape is None:
        return weights.kv_bytes_per_token // (2 * layers), weights.kv_bytes_per_token // (2 * layers)
    return (shape.whole.keys + shape.windowed.keys) // layers, (shape.whole.values + shape.windowed.values) // layers
