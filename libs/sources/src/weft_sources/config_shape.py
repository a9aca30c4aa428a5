"""What a model's `config.json` says of its cache and activations, as Hugging Face models have it.

What is missing or of another kind becomes the shape's `fault`, a sentence with file and field: the claim then says
it, and counts nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from weft_contracts.facts.shape import MOST_FAULT, Cache, LayerCounts, ModelShape
from weft_contracts.shown import shown

from weft_sources.metadata_names import CONFIG

_VALUE_BYTES: Final = 2
_STATE_BYTES: Final = 4
_MOST_LAYERS: Final = 10_000
_MOST: Final = 1 << 31
_LAYERS: Final = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_HEADS: Final = ("num_attention_heads", "n_head", "num_heads", "n_heads")
_WIDTH: Final = ("hidden_size", "n_embd", "d_model")
_INNER: Final = ("intermediate_size", "n_inner", "ffn_dim", "d_ff")
_USED: Final = ("num_experts_per_tok", "num_experts_per_token", "moe_topk")
_WHOLE: Final = ("full_attention", "attention", "global", "chunked_attention")
"""Layers that are counted as if they kept every token."""
_SLIDING: Final = ("sliding_attention", "local_attention", "sliding")
_STATE: Final = ("linear_attention", "mamba", "mamba2", "conv", "recurrent")
_SLIDE_ALL: Final = ("mistral", "mixtral", "starcoder2", "phi3")
"""Model types all of whose layers keep `sliding_window`, where it is set and no list of layers says otherwise."""


class _Fault(ValueError):
    """What is wrong with a field; the message is the sentence."""


class _Layers(NamedTuple):
    """How many there are of each sort."""

    whole: int
    windowed: int
    state: int


def shape_of_config(config: Mapping[str, Any], text: Mapping[str, Any]) -> ModelShape:
    """The shape; `text`: the part of the configuration that tells of text, or all of it."""
    computed_in = _type(text) or _type(config)
    vocabulary = _maybe(text, "vocab_size") or 0
    try:
        return _shape(text).model_copy(update={"computed_in": computed_in, "vocabulary": vocabulary})
    except _Fault as fault:
        return ModelShape(computed_in=computed_in, vocabulary=vocabulary, fault=f"{CONFIG}: {fault}"[:MOST_FAULT])


def _shape(text: Mapping[str, Any]) -> ModelShape:
    layers = _whole_number(text, _LAYERS, "how many layers there are", _MOST_LAYERS)
    sorts = _sorts(text, layers)
    heads, width = 0, _whole_number(text, _WIDTH, "how many values a token has")
    keys = values = 0
    if sorts.whole or sorts.windowed:
        heads = _whole_number(text, _HEADS, "how many attention heads there are")
        keys, values = _cached(text, heads, width)
    inner = _first(text, _INNER) or 4 * width
    expert = _maybe(text, "moe_intermediate_size") or inner
    return ModelShape(
        whole=Cache(keys=sorts.whole * keys, values=sorts.whole * values),
        windowed=Cache(keys=sorts.windowed * keys, values=sorts.windowed * values),
        window_tokens=_maybe(text, "sliding_window") or 0 if sorts.windowed else 0,
        state_bytes=sorts.state * _state_bytes(text, width) if sorts.state else 0,
        counts=LayerCounts(whole=sorts.whole, windowed=sorts.windowed, state=sorts.state),
        width=max(width, heads * (_maybe(text, "head_dim") or 0)),
        inner=max(inner, (_first(text, _USED) or 0) * expert),
    )


def _cached(text: Mapping[str, Any], heads: int, width: int) -> tuple[int, int]:
    """Bytes of one token's keys and values in one layer."""
    if latent := _maybe(text, "kv_lora_rank"):
        turned = _maybe(text, "qk_rope_head_dim")
        if turned is None:
            raise _missing("qk_rope_head_dim", "how many values of a key are turned")
        return (latent + turned) * _VALUE_BYTES, 0
    length = _maybe(text, "head_dim")
    if length is None:
        if width % heads:
            raise _missing("head_dim", f"hidden_size {width} does not divide by {heads} heads")
        length = width // heads
    kv_heads = _maybe(text, "num_key_value_heads") or (1 if text.get("multi_query") is True else heads)
    keys = kv_heads * length * _VALUE_BYTES
    return keys, kv_heads * (_maybe(text, "v_head_dim") or length) * _VALUE_BYTES


def _sorts(text: Mapping[str, Any], layers: int) -> _Layers:
    """By what the configuration lists; a window without a word of which layers have it counts for none, but in model
    types that are known to have it in all."""
    named: Any = text.get("layer_types") or text.get("layers_block_type")
    window = _maybe(text, "sliding_window")
    if named is not None:
        return _listed(named, layers, window)
    if isinstance(pattern := text.get("hybrid_override_pattern"), str):
        whole, state = pattern.count("*"), pattern.count("M")
        if not set(pattern) <= set("M*-E") or not whole + state:
            raise _Fault(f"hybrid_override_pattern is {shown(pattern[:40])!r}: want M, *, E and - for its layers")
        return _Layers(whole, 0, state)
    if window is None or text.get("use_sliding_window") is False:
        return _Layers(layers, 0, 0)
    period = _maybe(text, "sliding_window_pattern")
    if period is not None:
        whole = layers // period
        return _Layers(whole, layers - whole, 0)
    return _Layers(0, layers, 0) if text.get("model_type") in _SLIDE_ALL else _Layers(layers, 0, 0)


def _listed(named: Any, layers: int, window: int | None) -> _Layers:
    if not isinstance(named, list) or len(cast("list[Any]", named)) < layers:
        raise _Fault(f"layer_types is no list of {layers} layers: want the sort of each")
    sorts = cast("list[Any]", named)[:layers]
    for each in sorts:
        if each not in (*_WHOLE, *_SLIDING, *_STATE):
            known = ", ".join((*_WHOLE, *_SLIDING, *_STATE))
            raise _Fault(f"layer_types names {shown(str(each)[:40])!r}, whose cache is not known: there are {known}")
    state, sliding = (sum(each in sort for each in sorts) for sort in (_STATE, _SLIDING))
    if sliding and window is None:
        raise _missing("sliding_window", "how many tokens its sliding layers keep")
    return _Layers(layers - state - sliding, sliding, state)


def _state_bytes(text: Mapping[str, Any], width: int) -> int:
    """Of one layer and request: what its convolution has seen last, and the state, in 32 bits."""
    if (heads := _maybe(text, "linear_num_value_heads")) is not None:
        keys = _needed(text, "linear_num_key_heads") * _needed(text, "linear_key_head_dim")
        values = heads * _needed(text, "linear_value_head_dim")
        seen = _needed(text, "linear_conv_kernel_dim") - 1
        return _STATE_BYTES * (seen * (2 * keys + values) + values * _needed(text, "linear_key_head_dim"))
    if (kernel := _first(text, ("mamba_d_conv", "conv_kernel", "d_conv"))) is not None:
        state = _whole_number(text, ("mamba_d_state", "ssm_state_size", "state_size"), "how large a state is")
        heads = _first(text, ("mamba_n_heads", "mamba_num_heads"))
        length = _first(text, ("mamba_d_head", "mamba_head_dim"))
        inner = heads * length if heads and length else (_first(text, ("mamba_expand", "expand")) or 2) * width
        groups = _first(text, ("mamba_n_groups", "n_groups")) or 0
        return _STATE_BYTES * ((kernel - 1) * (inner + 2 * groups * state) + inner * state)
    if (kernel := _maybe(text, "conv_L_cache")) is not None:
        return _STATE_BYTES * kernel * width
    raise _Fault("some of its layers carry a state whose size no known field tells: want mamba_d_state or its like")


def _type(fields: Mapping[str, Any]) -> str:
    """The type of its weights, without its library's name; empty: none."""
    named: Any = fields.get("dtype") or fields.get("torch_dtype")
    return named.removeprefix("torch.")[:32] if isinstance(named, str) and named.isprintable() else ""


def _missing(name: str, what: str) -> _Fault:
    return _Fault(f"{name} is missing: {what}")


def _whole_number(text: Mapping[str, Any], names: Sequence[str], what: str, most: int = _MOST) -> int:
    found = _first(text, names, most)
    if found is None:
        raise _missing(names[0], what)
    return found


def _needed(text: Mapping[str, Any], name: str) -> int:
    return _whole_number(text, (name,), "its layers carry a state")


def _first(text: Mapping[str, Any], names: Sequence[str], most: int = _MOST) -> int | None:
    return next((found for name in names if (found := _maybe(text, name, most)) is not None), None)


def _maybe(text: Mapping[str, Any], name: str, most: int = _MOST) -> int | None:
    """None: it isn't there; 0 says so, too."""
    value: Any = text.get(name)
    if value is None or (type(value) is int and not value):
        return None
    if isinstance(value, list):  # told layer by layer: the largest counts for all
        numbers = cast("list[Any]", value)
        value = max(numbers) if numbers and all(type(each) is int for each in numbers) else numbers
    if type(value) is not int or not 0 < value <= most:
        raise _Fault(f"{name} is {shown(str(value)[:40])!r}: want a whole number from 1 to {most}")
    return value
