"""What a claim is computed from, out of a model's `config.json`. Of a GGUF file: `weft_gguf.weights`."""

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from weft_contracts.facts.shape import MOST_FAULT, ModelShape
from weft_contracts.facts.values import Weights
from weft_contracts.shown import shown
from weft_gguf.weights import KV_VALUE_BYTES

from weft_sources.config_shape import shape_of_config
from weft_sources.refused import SourceRefused

MOST_CONFIG: Final = 4 << 20
"""Of `config.json`, in bytes; that of the largest models is a few KB."""
MOST_LAYERS: Final = 10_000
MOST_NUMBER: Final = 1 << 31
"""Of heads, of their length, of a context's tokens."""
MOST_BYTES: Final = 1 << 53
"""As a fact may say it."""
MOST_ARCHITECTURE: Final = 128
"""Characters of its name; the longest have some 50."""


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


def weights_of_config(
    config: Mapping[str, Any], weight_bytes: int, where: str, tensors: Mapping[str, int] | str = ""
) -> Weights:
    """The weights of a safetensors folder, from its `config.json` as Hugging Face models have it; `where` names that
    file to people; `tensors`: bytes by their type, or why the headers can't be read; empty: nobody did.

    The numbers are what they have always been, 0 where nothing is told; the shape counts closer, and names as its fault
    what a claim needs and isn't told. Raises SourceRefused where a part has another shape than that of any model, or a
    number is beyond `MOST_LAYERS` or `MOST_NUMBER`.
    """
    text, vision = _part(config, "text_config", where) or config, _part(config, "vision_config", where)
    layers = _number(text, "num_hidden_layers", where, MOST_LAYERS)
    heads = _number(text, "num_attention_heads", where)
    kv_heads = _number(text, "num_key_value_heads", where) or heads
    head_length = _number(text, "head_dim", where) or (_number(text, "hidden_size", where) // heads if heads else 0)
    kv = kv_bytes_per_token(layers, kv_heads, head_length)
    if latent := _number(text, "kv_lora_rank", where):
        kv = layers * (latent + _number(text, "qk_rope_head_dim", where)) * KV_VALUE_BYTES
    for size, of in ((kv, "the cache of one token"), (weight_bytes, "the weights")):
        if size > MOST_BYTES:
            raise SourceRefused(f"{where}: {of} would take {size} bytes, and no model's take more than {MOST_BYTES}")
    return Weights(
        format="safetensors",
        architecture=_architecture(config, where),
        weight_bytes=weight_bytes,
        kv_bytes_per_token=kv,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        vision_heads=_number(vision, "num_attention_heads", where) or _number(vision, "num_heads", where),
        context_tokens=_number(text, "max_position_embeddings", where),
        shape=_with_tensors(shape_of_config(config, text), tensors),
    )


def _with_tensors(shape: ModelShape, tensors: Mapping[str, int] | str) -> ModelShape:
    if isinstance(tensors, str):
        return shape.model_copy(update={"fault": (tensors or shape.fault)[:MOST_FAULT]})
    return shape.model_copy(update={"tensor_bytes": dict(tensors)})


def _part(config: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    """Empty where there is none."""
    part: Any = config.get(key)
    if part is None:
        return {}
    if not isinstance(part, dict):
        raise SourceRefused(f"{where} has a {key} of another shape than any model's: want a JSON object, or none")
    return cast("dict[str, Any]", part)


def _architecture(config: Mapping[str, Any], where: str) -> str:
    """The first that it names; empty: it names none."""
    named: Any = config.get("architectures")
    names = cast("list[Any]", named) if isinstance(named, list) else [named]
    first: Any = (names[0] if names else None) or config.get("model_type") or ""
    if (named is not None and not isinstance(named, list)) or not isinstance(first, str):
        raise SourceRefused(f"{where} has architectures of another shape than any model's: want a list of names")
    if len(first) > MOST_ARCHITECTURE or not first.isprintable():
        most = f"want at most {MOST_ARCHITECTURE} printable characters"
        raise SourceRefused(f"{where} names the architecture {shown(first)!r}: {most}")
    return first


def _number(config: Mapping[str, Any], key: str, where: str, most: int = MOST_NUMBER) -> int:
    """0 where it is none, or told layer by layer."""
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        return 0
    if value > most:
        raise SourceRefused(f"{where} has {shown(str(value))} as {key}: want at most {most}")
    return value
