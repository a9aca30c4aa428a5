"""How much memory a replica takes on a device: computed from its header and spec, never guessed.

claim = weights + KV bytes per token × context × concurrency + overhead, each shared out over the
devices where tensor parallelism shares it: weights by the number of devices, the KV cache by at most
the number of KV heads (more devices than that hold copies), the overhead not at all.
"""

from dataclasses import dataclass

from weft_contracts.facts.values import EngineName, ModelSpec, Vendor, Weights

MIB = 1 << 20
GIB = 1 << 30

SIMULATED_BYTES = 128 * MIB
"""A simulated replica's claim when its spec names none: what the process itself takes, with room."""
_LLAMA_CPP_OVERHEAD = 160 * MIB
"""Process, compute buffers and tokenizer of the llama.cpp engine host."""
_VLLM_OVERHEAD = 2355 * MIB
"""Activations and CUDA graphs of vLLM on one accelerator (KAITO reserves 2.3 GiB)."""
_VLLM_CPU_OVERHEAD = GIB
"""vLLM on a processor: 725 MB were measured for one process with a toy model."""
_SLACK = 0.05
"""Of the weights: fragments and padding."""


class ClaimUnknown(ValueError):
    """The memory of a replica can't be computed. The message says what is missing."""


@dataclass(frozen=True, slots=True)
class Need:
    """What one replica needs of memory, before it is known on which devices."""

    engine: EngineName
    weights: int
    kv: int
    """For all requests that run at once, each with its full context."""
    kv_heads: int
    fraction: float | None = None
    """The share of each device that the engine takes whatever the model needs."""

    def on_each(self, vendor: Vendor, devices: int) -> int:
        """Bytes on each of so many devices of this vendor."""
        copies = min(devices, self.kv_heads) if self.kv_heads else devices
        return -(-self.weights // devices) - (-self.kv // copies) + _overhead(self.engine, vendor)

    def claim(self, total: int, free: int, each: int) -> int | None:
        """Bytes to claim on a device with so much memory, so much of it free; None if it doesn't fit."""
        if self.fraction is None:
            return each if each <= free else None
        claim = int(total * self.fraction)
        return claim if free >= claim >= each else None


def need_of(spec: ModelSpec) -> Need:
    """What a spec needs. Raises ClaimUnknown where its header or arguments don't say enough."""
    match spec.engine:
        case "simulated":
            return Need("simulated", _simulated_bytes(spec), 0, 0)
        case "llama.cpp" | "vllm":
            weights = _checked(spec.weights)
            kv = weights.kv_bytes_per_token * spec.context_tokens * spec.concurrency
            padded = weights.weight_bytes + int(weights.weight_bytes * _SLACK)
            return Need(spec.engine, padded, kv, weights.kv_heads, _fraction(spec))


def _overhead(engine: EngineName, vendor: Vendor) -> int:
    match engine:
        case "simulated":
            return 0
        case "llama.cpp":
            return _LLAMA_CPP_OVERHEAD
        case "vllm":
            return _VLLM_CPU_OVERHEAD if vendor == "cpu" else _VLLM_OVERHEAD


def _checked(weights: Weights) -> Weights:
    if weights.format == "none":
        raise ClaimUnknown("its memory can't be computed: no node's inspection has read the file's header")
    if weights.weight_bytes <= 0:
        raise ClaimUnknown("its memory can't be computed: the file's header names no weights")
    if weights.kv_bytes_per_token <= 0:
        raise ClaimUnknown("its memory can't be computed: the file's header does not give the KV cache's size")
    return weights


def _simulated_bytes(spec: ModelSpec) -> int:
    given = spec.engine_args.get("memory_bytes", SIMULATED_BYTES)
    if isinstance(given, bool) or not isinstance(given, int) or given <= 0:
        raise ClaimUnknown(f"engine_args.memory_bytes is {given!r}: want a whole number of bytes above 0")
    return given


def _fraction(spec: ModelSpec) -> float | None:
    if spec.engine != "vllm" or "gpu_memory_utilization" not in spec.engine_args:
        return None
    given = spec.engine_args["gpu_memory_utilization"]
    if isinstance(given, bool | str) or not 0 < given <= 1:
        raise ClaimUnknown(f"engine_args.gpu_memory_utilization is {given!r}: want a share above 0 and up to 1")
    return float(given)
