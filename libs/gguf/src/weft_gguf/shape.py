"""What a GGUF header says of a model's cache and activations, as llama.cpp lays them out.

Seen in its log with models of a few megabytes (`bench/claims.py`): layers with a window keep that and one step's
tokens; latent attention keeps the compressed keys alone, and only of files that say the lengths of its heads; layers
with a state keep it in 32 bits for each request.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from weft_contracts.facts.shape import Cache, ModelShape

from weft_gguf.facts import Facts
from weft_gguf.gguf_header import GgufHeader

_VALUE_BYTES: Final = 2
_STATE_BYTES: Final = 4
_PERIODS: Final[Mapping[str, int]] = MappingProxyType({"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "cohere2": 4})
"""By architecture, of how many layers that follow one another the last keeps every token and the others a window,
where the file doesn't say. Of all other architectures every layer is counted whole."""
_MOST_PERIOD: Final = 1000


def shape_of(facts: Facts, header: GgufHeader) -> ModelShape:
    """The shape. Raises NotGguf where a list is none of numbers."""
    architecture = header.architecture
    # a file without the lengths of its heads is of before llama.cpp kept the compressed keys: then it keeps all
    latent = header.latent_length if facts.integer(f"{architecture}.attention.key_length_mla", 0) else 0
    window = facts.integer(f"{architecture}.attention.sliding_window", 0)
    period = facts.integer(f"{architecture}.attention.sliding_window_pattern", _PERIODS.get(architecture, 0))
    slides = architecture in _PERIODS and window > 0 and 0 < period <= _MOST_PERIOD
    whole, windowed = [0, 0], [0, 0]
    for layer, heads in enumerate((1,) * header.layers if latent else header.kv_heads):
        into = windowed if slides and layer % period < period - 1 else whole
        into[0] += _VALUE_BYTES * (latent or heads * header.key_length)
        into[1] += 0 if latent else _VALUE_BYTES * heads * header.value_length
    inner = max(facts.per_layer(f"{architecture}.feed_forward_length", header.layers), default=0)
    used = facts.integer(f"{architecture}.expert_used_count", 0) if header.experts else 0
    return ModelShape(
        whole=Cache(keys=whole[0], values=whole[1]),
        windowed=Cache(keys=windowed[0], values=windowed[1]),
        window_tokens=window if slides else 0,
        state_bytes=_state_bytes(facts, header),
        width=max(header.embedding_length, header.heads * header.key_length),
        inner=max(
            inner,
            used * facts.integer(f"{architecture}.expert_feed_forward_length", inner),
            2 * facts.integer(f"{architecture}.ssm.inner_size", 0),
        ),
        vocabulary=header.vocabulary,
    )


def _state_bytes(facts: Facts, header: GgufHeader) -> int:
    """Of one request: what a convolution has seen last, and the state itself, of each layer without KV heads."""
    name = f"{header.architecture}.ssm"
    inner, state = facts.integer(f"{name}.inner_size", 0), facts.integer(f"{name}.state_size", 0)
    seen = max(0, facts.integer(f"{name}.conv_kernel", 1) - 1)
    groups = facts.integer(f"{name}.group_count", 0)
    layers = sum(not heads for heads in header.kv_heads) or header.layers * bool(inner)
    return layers * _STATE_BYTES * (seen * (inner + 2 * groups * state) + inner * state)
