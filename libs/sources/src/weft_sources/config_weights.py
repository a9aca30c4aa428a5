"""What a claim is computed from, out of a model's `config.json`. Of a GGUF file: `weft_gguf.weights`."""

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from weft_contracts.facts.values import Weights
from weft_gguf.weights import KV_VALUE_BYTES

from weft_sources.refused import SourceRefused

MOST_CONFIG: Final = 4 << 20
"""Of `config.json`, in bytes; that of the largest models is a few KB."""


def config_body(content: bytes, where: str) -> dict[str, Any]:
    """A model's configuration; `where` names the file to people. Raises SourceRefused."""
    try:
        body: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise SourceRefused(f"{where} is no JSON: {error}") from None
    if not isinstance(body, dict):
        raise SourceRefused(f"{where} holds no JSON object")
    return cast("dict[str, Any]", body)


def kv_bytes_per_token(layers: int, kv_heads: int, head_length: int) -> int:
    """Bytes of KV cache that one token takes: a key and a value in each layer and KV head."""
    return 2 * layers * kv_heads * head_length * KV_VALUE_BYTES


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
