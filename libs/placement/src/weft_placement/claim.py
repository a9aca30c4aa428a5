"""How much memory a replica takes on a device: computed from its header and spec, never guessed.

An engine's profile names one of the formulas here and gives its figures.

- `header`: weights with some slack + KV bytes per token, by the cache's type, × context × concurrency + overhead,
  each shared out over the devices where tensor parallelism shares it: weights by the number of devices, the KV cache
  by at most the number of KV heads (more devices than that hold copies), the overhead not at all. Beside accelerators
  some of the machine's memory; where an argument says how many layers lie on one, `layers.py` divides all of it.
- `argument`: what one of the engine's arguments says, in bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, assert_never

from weft_contracts.engines import ArgumentClaim, EngineProfile, HeaderClaim
from weft_contracts.facts.values import ModelSpec, Vendor, Weights

from weft_placement.layers import layers_on_accelerator, parts_of

MIB = 1 << 20
GIB = 1 << 30


_CACHE_TYPE_ARGUMENTS = ("cache_type_k", "cache_type_v")
_CACHE_BLOCK_BYTES: Mapping[str, int] = MappingProxyType(
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
"""Of a block of 32 cached values, by ggml's types: the values' bits, and with quantised ones their scale and offset."""
_HEADERS_TYPE = "f16"


class ClaimUnknown(ValueError):
    """The memory of a replica can't be computed. The message says what is missing."""


@dataclass(frozen=True, slots=True)
class Need:
    """What one replica needs of memory, before it is known on which devices. Bytes."""

    weights: int
    kv: int
    """For all requests that run at once, each with its full context."""
    kv_heads: int
    fraction: float | None = None
    """The share of each device that the engine takes whatever the model needs."""
    overhead: int = 0
    """On each accelerator."""
    cpu_overhead: int = 0
    """On a processor."""
    host_overhead: int = 0
    """Of the machine's memory, beside each accelerator."""
    host: int = 0
    """Of the machine's memory beside accelerators: weights and cache of what doesn't lie on them."""
    place: Literal["anywhere", "processor", "accelerator"] = "anywhere"
    """What it may be placed on."""

    def goes_to(self, vendor: Vendor) -> bool:
        """Whether it may be placed on devices of this vendor."""
        return self.place == "anywhere" or (self.place == "processor") == (vendor == "cpu")

    def beside(self, accelerators: int) -> int:
        """Bytes of the machine's memory beside so many accelerators."""
        return self.host + self.host_overhead * accelerators if accelerators else 0

    def on_each(self, vendor: Vendor, devices: int) -> int:
        """Bytes on each of so many devices of this vendor."""
        copies = min(devices, self.kv_heads) if self.kv_heads else devices
        overhead = self.cpu_overhead if vendor == "cpu" else self.overhead
        return -(-self.weights // devices) - (-self.kv // copies) + overhead

    def claim(self, total: int, free: int, each: int) -> int | None:
        """Bytes to claim on a device with so much memory, so much of it free; None if it doesn't fit."""
        if self.fraction is None:
            return each if each <= free else None
        claim = int(total * self.fraction)
        return claim if free >= claim >= each else None


def need_of(spec: ModelSpec, profile: EngineProfile) -> Need:
    """What a spec needs of this engine. Raises ClaimUnknown where its header or arguments don't say enough."""
    match profile.claim:
        case ArgumentClaim() as formula:
            return Need(_argument(spec, formula), 0, 0)
        case HeaderClaim() as formula:
            weights = _checked(spec.weights)
            kv = kv_bytes_per_token(spec, profile) * spec.context_tokens * spec.concurrency
            adapters = sum(adapter.bytes for adapter in spec.adapters)
            need = Need(
                _padded(weights.weight_bytes, formula) + adapters,
                kv,
                weights.kv_heads,
                _fraction(spec, formula),
                formula.overhead,
                formula.cpu_overhead,
                formula.host_overhead,
            )
            return _divided(need, spec, formula)
        case _:
            assert_never(profile.claim)


def _padded(weight_bytes: int, formula: HeaderClaim) -> int:
    return weight_bytes + int(weight_bytes * formula.slack)


def _divided(need: Need, spec: ModelSpec, formula: HeaderClaim) -> Need:
    """The same as an argument divides it between an accelerator and the machine's memory."""
    try:
        layers = layers_on_accelerator(spec, formula)
        if layers is None:
            return need
        if layers == 0:
            return replace(need, place="processor")
        need = replace(need, place="accelerator")
        if layers >= spec.weights.layers:
            return need
        parts = parts_of(spec.weights, layers)
    except ValueError as fault:
        raise ClaimUnknown(f"engine_args.{formula.layers_argument} {fault}") from None
    device_kv = -(-need.kv * parts.device_kv // parts.kv) if parts.kv else 0
    host_kv = -(-need.kv * parts.host_kv // parts.kv) if parts.kv else need.kv
    host = _padded(parts.host_weights, formula) + host_kv + formula.cpu_overhead
    # an adapter lies where the layers do that it changes, which its file's size alone doesn't tell: it counts in both
    adapters = sum(adapter.bytes for adapter in spec.adapters)
    device_weights = _padded(parts.device_weights, formula) + adapters
    return replace(need, weights=device_weights, kv=device_kv, host=host + adapters, host_overhead=0)


def kv_bytes_per_token(spec: ModelSpec, profile: EngineProfile) -> int:
    """Bytes of KV cache for one token: the header's are for values of 16 bits, an argument may name another type.

    Where keys and values are of two types, the larger counts for both: the header doesn't tell how they share.
    """
    names = [name for name in _CACHE_TYPE_ARGUMENTS if name in profile.arguments]
    types = [spec.engine_args.get(name, _HEADERS_TYPE) for name in names]
    for name, type in zip(names, types, strict=True):
        if not isinstance(type, str) or type not in _CACHE_BLOCK_BYTES:
            raise ClaimUnknown(f"engine_args.{name} is {type!r}: want one of {', '.join(_CACHE_BLOCK_BYTES)}")
    largest = max((_CACHE_BLOCK_BYTES[str(type)] for type in types), default=_CACHE_BLOCK_BYTES[_HEADERS_TYPE])
    return -(-spec.weights.kv_bytes_per_token * largest // _CACHE_BLOCK_BYTES[_HEADERS_TYPE])


def _checked(weights: Weights) -> Weights:
    if weights.format == "none":
        raise ClaimUnknown("its memory can't be computed: no node's inspection has read the file's header")
    if weights.weight_bytes <= 0:
        raise ClaimUnknown("its memory can't be computed: the file's header names no weights")
    if weights.kv_bytes_per_token <= 0:
        raise ClaimUnknown("its memory can't be computed: the file's header does not give the KV cache's size")
    return weights


def _argument(spec: ModelSpec, formula: ArgumentClaim) -> int:
    given = spec.engine_args.get(formula.argument, formula.default)
    if isinstance(given, bool) or not isinstance(given, int) or given <= 0:
        raise ClaimUnknown(f"engine_args.{formula.argument} is {given!r}: want a whole number of bytes above 0")
    return given


def _fraction(spec: ModelSpec, formula: HeaderClaim) -> float | None:
    name = formula.share_argument
    if name is None or name not in spec.engine_args:
        return None
    given = spec.engine_args[name]
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= 1:
        raise ClaimUnknown(f"engine_args.{name} is {given!r}: want a share above 0 and up to 1")
    return float(given)
