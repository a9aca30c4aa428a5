"""How much memory a replica takes on a device: computed from its header and spec, never guessed.

An engine's profile names one of the formulas here and gives its figures.

- `header`: weights as the engine loads them (`loaded_weights.py`) with some slack + the cache of all requests
  (`cache.py`) + overhead and what a step's activations take beyond it (`activations.py`), each shared out over the
  devices where tensor parallelism shares it: weights by the number of devices, the cache by at most the number of KV
  heads (more devices than that hold copies), the overhead not at all, nor a draft model (`draft_model.py`). Beside
  accelerators some of the machine's memory;
  where an argument says how many layers lie on one, `layers.py` divides all of it.
- `argument`: what one of the engine's arguments says, in bytes.
"""

from dataclasses import dataclass, replace
from typing import Literal, assert_never

from weft_contracts.engines import ArgumentClaim, EngineProfile, HeaderClaim
from weft_contracts.facts.values import ModelSpec, Vendor

from weft_placement.activations import extra_activations
from weft_placement.cache import cache_bytes, cache_heads
from weft_placement.claim_unknown import ClaimUnknown
from weft_placement.device_buffers import device_buffers
from weft_placement.draft_model import draft_bytes, draft_spec
from weft_placement.layers import layers_on_accelerator, parts_of
from weft_placement.loaded_weights import checked_weights, loaded_bytes, padded

MIB = 1 << 20
GIB = 1 << 30

__all__ = ["GIB", "MIB", "ClaimUnknown", "Need", "need_of", "offloads_of"]


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
    layers: int = 0
    """Of the model, which pipeline stages share; 0: not known, so they share evenly."""
    draft: int = 0
    """Of its draft model, on each device that the replica takes, which nothing is shared of."""

    @property
    def bytes(self) -> int:
        """Weights and cache of the model and of its draft model, however they are shared out."""
        return self.weights + self.kv + self.draft

    def goes_to(self, vendor: Vendor) -> bool:
        """Whether it may be placed on devices of this vendor."""
        return self.place == "anywhere" or (self.place == "processor") == (vendor == "cpu")

    def beside(self, accelerators: int) -> int:
        """Bytes of the machine's memory beside so many accelerators."""
        return self.host + self.host_overhead * accelerators if accelerators else 0

    def on_each(self, vendor: Vendor, devices: int, stages: int = 1) -> int:
        """Bytes on each of so many devices of this vendor, in each of so many pipeline stages: of the stage with the
        most layers."""
        copies = min(devices, self.kv_heads) if self.kv_heads else devices
        overhead = self.draft + (self.cpu_overhead if vendor == "cpu" else self.overhead)
        if stages == 1:
            return -(-self.weights // devices) - (-self.kv // copies) + overhead
        part, whole = (-(-self.layers // stages), self.layers) if self.layers else (1, stages)
        return -(-self.weights * part // (whole * devices)) - (-self.kv * part // (whole * copies)) + overhead

    def most_of(self, total: int, free: int) -> int:
        """The most bytes that a device with so much memory, so much of it free, takes of a replica."""
        if self.fraction is None:
            return free
        claim = int(total * self.fraction)
        return claim if free >= claim else 0

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
            weights = checked_weights(spec.weights)
            adapters = sum(adapter.bytes for adapter in spec.adapters)
            draft = draft_spec(spec, profile)
            more = extra_activations(formula, spec, *((draft,) if draft is not None else ()))
            need = Need(
                padded(loaded_bytes(spec, profile), formula) + adapters,
                cache_bytes(spec, profile),
                cache_heads(weights),
                _fraction(spec, formula),
                formula.overhead + more + device_buffers(spec, formula, draft=draft is not None),
                formula.cpu_overhead + more,
                formula.host_overhead,
                layers=weights.layers,
                draft=draft_bytes(draft, profile, formula) if draft is not None else 0,
            )
            return _divided(need, spec, profile, formula)
        case _:
            assert_never(profile.claim)


def _divided(need: Need, spec: ModelSpec, profile: EngineProfile, formula: HeaderClaim) -> Need:
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
        return _with_layers(_unwindowed(need, spec, profile), spec, formula, layers)
    except ValueError as fault:
        raise ClaimUnknown(f"engine_args.{formula.layers_argument} {fault}") from None


def offloads_of(spec: ModelSpec, profile: EngineProfile) -> tuple[Need, ...]:
    """What it needs with 1, 2, … of its layers on an accelerator, up to all but one, where nothing is said of how many.

    Empty: the engine can't lie in two places, the spec says itself how, or keeps no sizes of single layers. Raises
    ClaimUnknown as `need_of` does.
    """
    formula = profile.claim
    if not isinstance(formula, HeaderClaim) or formula.layers_argument is None:
        return ()
    need, weights = need_of(spec, profile), spec.weights
    known = weights.layers and sum(run.layers for run in weights.layer_runs) == weights.layers
    if need.place != "anywhere" or not known:
        return ()
    on_it = replace(_unwindowed(need, spec, profile), place="accelerator")
    return tuple(_with_layers(on_it, spec, formula, count) for count in range(1, weights.layers))


def _unwindowed(need: Need, spec: ModelSpec, profile: EngineProfile) -> Need:
    """With each layer's cache whole: which of the layers that lie on an accelerator keep a window, nothing tells."""
    return replace(need, kv=cache_bytes(spec, profile, windows=False))


def _with_layers(need: Need, spec: ModelSpec, formula: HeaderClaim, layers: int) -> Need:
    """The same with so many layers on an accelerator, above 0 and not all. Raises ValueError."""
    parts = parts_of(spec.weights, layers)
    device_kv = -(-need.kv * parts.device_kv // parts.kv) if parts.kv else 0
    host_kv = -(-need.kv * parts.host_kv // parts.kv) if parts.kv else need.kv
    host = padded(parts.host_weights, formula) + host_kv + max(formula.cpu_overhead, formula.host_overhead)
    # an adapter lies where the layers do that it changes, which its file's size alone doesn't tell: it counts in both
    adapters = sum(adapter.bytes for adapter in spec.adapters)
    device_weights = padded(parts.device_weights, formula) + adapters
    return replace(need, weights=device_weights, kv=device_kv, host=host + adapters, host_overhead=0)


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
