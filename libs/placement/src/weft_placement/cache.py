"""What a replica's cache takes: of each layer as it keeps tokens, by the type of what is cached."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from weft_contracts.engines import EngineProfile, HeaderClaim
from weft_contracts.facts.shape import Cache
from weft_contracts.facts.values import ModelSpec, Weights

from weft_placement.activations import step_tokens
from weft_placement.claim_unknown import ClaimUnknown
from weft_placement.grouped_cache import SortedCache, grouped_bytes, is_grouped

_KEYS, _VALUES = "cache_type_k", "cache_type_v"
_BOTH: Final = "kv_cache_dtype"
_COMPUTED: Final = "dtype"
_HEADERS_TYPE: Final = "f16"
_GGML: Final[Mapping[str, int]] = MappingProxyType(
    {
        "f32": 128,
        "f16": 64,
        "bf16": 64,
        "q8_0": 34,
        "q5_1": 24,
        "q5_0": 22,
        "q4_1": 20,
        "q4_0": 18,
        "iq4_nl": 18,
    }
)
"""Bytes of a block of 32 cached values, by ggml's types: the values' bits, and with quantised ones their scale and
offset."""
_TORCH: Final[Mapping[str, int]] = MappingProxyType(
    {
        "auto": 64,
        "float32": 128,
        "float": 128,
        "float16": 64,
        "half": 64,
        "bfloat16": 64,
        "fp8": 32,
        "fp8_e4m3": 32,
        "fp8_e5m2": 32,
        "fp8_inc": 32,
        **dict.fromkeys(("fp8_ds_mla", "nvfp4_ds_mla", "nvfp4", "nvfp4_4over6", "ultraquant_4bit"), 64),
        **dict.fromkeys(("turboquant_k8v4", "turboquant_4bit_nc", "turboquant_k3v4_nc", "turboquant_3bit_nc"), 64),
        **dict.fromkeys(("int4_per_token_head", "int8_per_token_head", "fp8_per_token_head"), 64),
    }
)
"""The same by the names of vLLM's; those whose scales nobody measured here count as 16 bits, which all are below."""
_GRAIN: Final = 256
"""Tokens to which a window's cache is rounded up."""


class _Types(NamedTuple):
    """Bytes of 32 cached keys, and of 32 values."""

    keys: int
    values: int

    def of(self, cache: Cache) -> int:
        """Bytes of one token, whose cache is told for values of 16 bits."""
        whole = _GGML[_HEADERS_TYPE]
        return -(-cache.keys * self.keys // whole) - (-cache.values * self.values // whole)


def cache_bytes(spec: ModelSpec, profile: EngineProfile, *, windows: bool = True) -> int:
    """Of all requests that run at once, each with its full context. `windows`: layers with one count by it, where the
    engine drops what lies before. Raises ClaimUnknown for a type that isn't known.

    Of a model whose shape an older worker didn't tell every layer keeps every token, and the larger type counts for
    keys and values.
    """
    types, shape = _types(spec, profile), spec.weights.shape
    if shape is None:
        largest = Cache(keys=spec.weights.kv_bytes_per_token)
        return _Types(max(types), 0).of(largest) * spec.context_tokens * spec.concurrency
    formula = profile.claim
    if isinstance(formula, HeaderClaim) and shape.counts is not None:
        whole, windowed = types.of(shape.whole), types.of(shape.windowed)
        cache = SortedCache(shape.counts, whole, windowed, shape.window_tokens, shape.state_bytes)
        if is_grouped(cache, formula):
            return grouped_bytes(spec, formula, cache)
    kept = spec.context_tokens
    if windows and shape.window_tokens and isinstance(formula, HeaderClaim) and formula.drops_before_windows:
        step = step_tokens(spec, formula)
        kept = min(kept, -(-(shape.window_tokens + step) // _GRAIN) * _GRAIN)
    each = types.of(shape.whole) * spec.context_tokens + types.of(shape.windowed) * kept + shape.state_bytes
    return each * spec.concurrency


def cache_heads(weights: Weights) -> int:
    """By how many parts a cache can be shared: with latent attention by none, each device keeps all of it."""
    shape = weights.shape
    latent = shape is not None and shape.whole.keys > 0 and not shape.whole.bytes - shape.whole.keys
    return 1 if latent else weights.kv_heads


def _types(spec: ModelSpec, profile: EngineProfile) -> _Types:
    if _BOTH in profile.arguments:
        given = spec.engine_args.get(_BOTH, "auto")
        size = _block(_TORCH, _BOTH, given)
        if given == "auto":
            size = _block(_TORCH, _COMPUTED, _computed_in(spec))
        return _Types(size, size)
    keys, values = (
        _block(_GGML, name, spec.engine_args.get(name, _HEADERS_TYPE) if name in profile.arguments else _HEADERS_TYPE)
        for name in (_KEYS, _VALUES)
    )
    return _Types(keys, values)


def _computed_in(spec: ModelSpec) -> object:
    """The type that an engine computes in, and caches, where nothing else is said: the model's own, and of a model that
    names none or another the widest."""
    given = spec.engine_args.get(_COMPUTED, "auto")
    if given != "auto" or (shape := spec.weights.shape) is None:
        return given
    return shape.computed_in if shape.computed_in in _TORCH else "float32"


def _block(known: Mapping[str, int], name: str, type: object) -> int:
    if not isinstance(type, str) or type not in known:
        raise ClaimUnknown(f"engine_args.{name} is {type!r}: want one of {', '.join(known)}")
    return known[type]
