"""What a claim is computed from, out of a model's own description."""

from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from weft_contracts.facts.values import MOST_LAYER_RUNS, LayerRun, Weights

if TYPE_CHECKING:
    from weft_gguf.header import GgufHeader

KV_VALUE_BYTES = 2
"""Bytes of one cached value: half precision."""


def kv_bytes_per_token(layers: int, kv_heads: int, head_length: int) -> int:
    """Bytes of KV cache that one token takes: a key and a value in each layer and KV head."""
    return 2 * layers * kv_heads * head_length * KV_VALUE_BYTES


def weights_of_header(header: "GgufHeader") -> Weights:
    """The weights of a GGUF file, or of several that make one model."""
    runs = layer_runs(header)
    return Weights(
        format="gguf",
        architecture=header.architecture,
        # of several files all that they hold, as it has always been told: the others are little but tensors
        weight_bytes=header.tensor_bytes if header.splits == 1 else header.file_bytes,
        kv_bytes_per_token=round(header.kv_bytes_per_token(KV_VALUE_BYTES)),
        layers=header.layers,
        heads=header.heads,
        kv_heads=max(header.kv_heads, default=0),
        context_tokens=header.context_length,
        embeds=header.embeds,
        layer_runs=runs,
        output_bytes=header.output_bytes if runs else 0,
        input_bytes=header.input_bytes if runs else 0,
    )


def layer_runs(header: "GgufHeader") -> tuple[LayerRun, ...]:
    """A header's layers from the first on; nothing where there are none, or too many sorts of them to be told."""
    cached = header.layer_kv_bytes(KV_VALUE_BYTES) or (0.0,) * header.layers
    if len(cached) != header.layers:
        return ()
    layers = zip(header.layer_bytes, (round(each) for each in cached), strict=True)
    runs = tuple(LayerRun(len(list(alike)), *each) for each, alike in groupby(layers))
    return runs if len(runs) <= MOST_LAYER_RUNS else ()


def weights_of_config(config: Mapping[str, Any], weight_bytes: int) -> Weights:
    """The weights of a safetensors folder, from its `config.json` as Hugging Face models have it.

    For latent attention (`kv_lora_rank`) the cache holds one compressed vector a token and layer.
    """
    text: Mapping[str, Any] = config.get("text_config") or config
    vision: Mapping[str, Any] = config.get("vision_config") or {}
    layers, heads = _number(text, "num_hidden_layers"), _number(text, "num_attention_heads")
    kv_heads = _number(text, "num_key_value_heads") or heads
    head_length = _number(text, "head_dim") or (_number(text, "hidden_size") // heads if heads else 0)
    kv = kv_bytes_per_token(layers, kv_heads, head_length)
    if latent := _number(text, "kv_lora_rank"):
        kv = layers * (latent + _number(text, "qk_rope_head_dim")) * KV_VALUE_BYTES
    return Weights(
        format="safetensors",
        architecture=str((config.get("architectures") or [config.get("model_type", "")])[0]),
        weight_bytes=weight_bytes,
        kv_bytes_per_token=kv,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        vision_heads=_number(vision, "num_attention_heads") or _number(vision, "num_heads"),
        context_tokens=_number(text, "max_position_embeddings"),
    )


def _number(config: Mapping[str, Any], key: str) -> int:
    value = config.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
