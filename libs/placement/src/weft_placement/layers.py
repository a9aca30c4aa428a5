"""A model whose layers lie partly on an accelerator, the rest in the machine's memory: what lies where.

As llama.cpp places them: of n layers on an accelerator the output is the first, then come layers from the last on;
embeddings stay with the processor. A layer's KV cache lies where the layer does.
"""

from typing import NamedTuple

from weft_contracts.engines import EngineProfile, HeaderClaim
from weft_contracts.facts.values import ModelSpec, Weights


class LayerParts(NamedTuple):
    """What lies on the accelerator and what in the machine's memory: bytes; of the cache, bytes a token."""

    device_weights: int
    host_weights: int
    device_kv: int
    host_kv: int

    @property
    def kv(self) -> int:
        """Of all layers."""
        return self.device_kv + self.host_kv


def layers_on_accelerator(spec: ModelSpec, formula: HeaderClaim) -> int | None:
    """How many layers a spec wants there; None: nothing is said, all go where the replica goes. Raises ValueError."""
    given = spec.engine_args.get(formula.layers_argument, -1) if formula.layers_argument is not None else -1
    if isinstance(given, bool) or not isinstance(given, int):
        raise ValueError(f"is {given!r}: want a whole number of layers")
    return given if given >= 0 else None


def needs_layers(spec: ModelSpec, weights: Weights, profile: EngineProfile) -> bool:
    """Whether a spec's claim on these weights is computed from the sizes of single layers."""
    if not isinstance(profile.claim, HeaderClaim):
        return False
    try:
        layers = layers_on_accelerator(spec, profile.claim)
    except ValueError:
        return False
    return layers is not None and 0 < layers < weights.layers


def kept_weights(spec: ModelSpec, weights: Weights, profile: EngineProfile) -> Weights:
    """What a spec keeps of what an inspection found: the sizes of single layers where its claim needs them."""
    return weights if needs_layers(spec, weights, profile) else weights.without_layers


def parts_of(weights: Weights, layers: int) -> LayerParts:
    """What lies where with so many layers on an accelerator: above 0, and not all of them. Raises ValueError.

    Together at least the whole: an output that is made of the embeddings lies in both places.
    """
    if sum(run.layers for run in weights.layer_runs) != weights.layers or not weights.layers:
        raise ValueError(
            f"is {layers} of {weights.layers} layers, and the worker that read the file told no sizes of single "
            f"layers (it is older than that, or the file has none): upgrade it, or ask for all {weights.layers}"
        )
    left = layers - 1
    device_weights, device_kv, all_weights, all_kv = weights.output_bytes, 0, 0, 0
    for run in reversed(weights.layer_runs):
        there = min(left, run.layers)
        left -= there
        device_weights += there * run.bytes
        device_kv += there * run.kv_bytes_per_token
        all_weights += run.layers * run.bytes
        all_kv += run.layers * run.kv_bytes_per_token
    own_output = min(max(weights.weight_bytes - all_weights - weights.input_bytes, 0), weights.output_bytes)
    host_weights = max(weights.weight_bytes - (device_weights - weights.output_bytes) - own_output, 0)
    return LayerParts(device_weights, host_weights, device_kv, all_kv - device_kv)
