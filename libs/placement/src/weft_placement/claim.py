"""How much memory a replica takes on a device: computed from its header and spec, never guessed.

An engine's profile names one of the formulas here and gives its figures.

- `header`: weights with some slack + KV bytes per token × context × concurrency + overhead, each shared out over the
  devices where tensor parallelism shares it: weights by the number of devices, the KV cache by at most the number of
  KV heads (more devices than that hold copies), the overhead not at all.
- `argument`: what one of the engine's arguments says, in bytes.
"""

from dataclasses import dataclass
from typing import assert_never

from weft_contracts.engines import ArgumentClaim, EngineProfile, HeaderClaim
from weft_contracts.facts.values import ModelSpec, Vendor, Weights

MIB = 1 << 20
GIB = 1 << 30


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
            kv = weights.kv_bytes_per_token * spec.context_tokens * spec.concurrency
            padded = weights.weight_bytes + int(weights.weight_bytes * formula.slack)
            fraction = _fraction(spec, formula)
            return Need(padded, kv, weights.kv_heads, fraction, formula.overhead, formula.cpu_overhead)
        case _:
            assert_never(profile.claim)


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
