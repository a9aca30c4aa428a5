"""What weights take once they are loaded: a file's bytes, or more where an engine computes in a wider type."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from weft_contracts.engines import EngineProfile, HeaderClaim
from weft_contracts.facts.values import ModelSpec, Weights

from weft_placement.claim_unknown import ClaimUnknown

_DTYPE: Final = "dtype"
_WIDTHS: Final[Mapping[str, int]] = MappingProxyType({"F64": 8, "F32": 4, "F16": 2, "BF16": 2})
"""Bytes of a value, of types that an engine turns into its own; others, such as those of quantised weights, stay."""
_COMPUTED: Final[Mapping[str, int]] = MappingProxyType({"float32": 4, "float16": 2, "bfloat16": 2, "half": 2})
_WIDEST: Final = 4
"""Of a model that names none: it is then computed in 32 bits where nothing else is said."""


def loaded_bytes(spec: ModelSpec, profile: EngineProfile) -> int:
    """Bytes of all weights in memory. By the headers of the tensors where they were read, else by the files."""
    weights, shape = spec.weights, spec.weights.shape
    if shape is None or not shape.tensor_bytes:
        return weights.weight_bytes
    given = spec.engine_args.get(_DTYPE, "auto") if _DTYPE in profile.arguments else "auto"
    named = shape.computed_in if given == "auto" else given
    computed = _COMPUTED.get(named, _WIDEST) if isinstance(named, str) else _WIDEST
    return sum(
        size * computed // _WIDTHS[type] if type in _WIDTHS else size for type, size in shape.tensor_bytes.items()
    )


def padded(weight_bytes: int, formula: HeaderClaim) -> int:
    """Weights with the slack that the engine's formula gives them, in bytes."""
    return weight_bytes + int(weight_bytes * formula.slack)


def checked_weights(weights: Weights) -> Weights:
    """Weights that a claim can be computed from. Raises ClaimUnknown."""
    if weights.format == "none":
        raise ClaimUnknown("its memory can't be computed: no node's inspection has read the file's header")
    if weights.weight_bytes <= 0:
        raise ClaimUnknown("its memory can't be computed: the file's header names no weights")
    shape = weights.shape
    if shape is not None and shape.fault:
        raise ClaimUnknown(f"its memory can't be computed: {shape.fault}")
    if weights.kv_bytes_per_token <= 0 and (shape is None or not shape.state_bytes):
        raise ClaimUnknown("its memory can't be computed: the file's header does not give the KV cache's size")
    return weights
