"""What a `config.json` says of a model's cache, and what is missing there."""

from typing import Any

import pytest
from weft_contracts.facts.shape import Cache, LayerCounts, ModelShape
from weft_sources.config_weights import weights_of_config

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "hidden_size": 512,
    "intermediate_size": 1024,
    "vocab_size": 1000,
    "torch_dtype": "bfloat16",
}
LAYER = 2 * 64 * 2
"""Bytes of one layer's keys: two heads of 64 values of 16 bits."""


def shape(**changes: object) -> ModelShape:
    """Of that Llama with these fields; None takes one away."""
    body = {name: value for name, value in {**LLAMA, **changes}.items() if value is not None}
    found = weights_of_config(body, 1, "config.json").shape
    assert found is not None
    return found


def cached(keys: int, values: int) -> Cache:
    """So many layers of keys, and of values."""
    return Cache(keys=keys * LAYER, values=values * LAYER)


def test_a_plain_model_keeps_every_token_in_each_layer() -> None:
    found = shape()
    assert (cached(4, 4), Cache(), 0, 0, "") == (
        found.whole,
        found.windowed,
        found.window_tokens,
        found.state_bytes,
        found.fault,
    )
    assert (512, 1024, 1000, "bfloat16") == (found.width, found.inner, found.vocabulary, found.computed_in)


@pytest.mark.parametrize(
    ("changes", "whole", "windowed"),
    [
        ({"sliding_window": 64, "layer_types": ["sliding_attention"] * 3 + ["full_attention"]}, 1, 3),
        ({"sliding_window": 64, "sliding_window_pattern": 2}, 2, 2),
        ({"sliding_window": 64, "sliding_window_pattern": 6}, 0, 4),
        ({"sliding_window": 64, "model_type": "mistral"}, 0, 4),
        ({"sliding_window": None, "model_type": "mistral"}, 4, 0),
        ({"sliding_window": 64, "use_sliding_window": False}, 4, 0),
        ({"sliding_window": 64}, 4, 0),
        ({"layer_types": ["chunked_attention", "full_attention"] * 2}, 4, 0),
    ],
)
def test_layers_with_a_window_are_those_that_are_named_and_no_others(
    changes: dict[str, Any], whole: int, windowed: int
) -> None:
    found = shape(**changes)
    assert (cached(whole, whole), cached(windowed, windowed)) == (found.whole, found.windowed)
    assert (64 if windowed else 0) == found.window_tokens
    assert LayerCounts(whole=whole, windowed=windowed) == found.counts


def test_latent_attention_keeps_compressed_keys_and_no_values() -> None:
    found = shape(kv_lora_rank=512, qk_rope_head_dim=64)
    assert Cache(keys=4 * (512 + 64) * 2) == found.whole


def test_values_of_another_length_than_keys_count_by_theirs() -> None:
    assert Cache(keys=4 * 2 * 96 * 2, values=4 * 2 * 64 * 2) == shape(head_dim=96, v_head_dim=64).whole


def test_of_experts_those_that_work_on_a_token_count_for_activations() -> None:
    found = shape(num_experts_per_tok=8, moe_intermediate_size=768)
    assert 8 * 768 == found.inner


@pytest.mark.parametrize(
    ("changes", "layers", "state"),
    [
        # a convolution's three last inputs and the state, each of 16 values by 1,024, in 32 bits
        ({"mamba_d_conv": 4, "mamba_d_state": 16, "mamba_expand": 2}, ["mamba"] * 3, 4 * (3 * 1024 + 16 * 1024)),
        (
            {
                "linear_num_value_heads": 4,
                "linear_num_key_heads": 2,
                "linear_key_head_dim": 32,
                "linear_value_head_dim": 16,
                "linear_conv_kernel_dim": 4,
            },
            ["linear_attention"] * 3,
            4 * (3 * (2 * 64 + 64) + 64 * 32),
        ),
        ({"conv_L_cache": 3}, ["conv"] * 3, 4 * 3 * 512),
    ],
)
def test_layers_with_a_state_keep_it_for_each_request_and_no_tokens(
    changes: dict[str, Any], layers: list[str], state: int
) -> None:
    found = shape(layer_types=[*layers, "full_attention"], **changes)
    assert (cached(1, 1), 3 * state) == (found.whole, found.state_bytes)
    assert LayerCounts(whole=1, state=3) == found.counts


def test_a_pattern_of_letters_names_layers_too() -> None:
    found = shape(hybrid_override_pattern="M-*E", conv_kernel=4, ssm_state_size=16, expand=2)
    assert cached(1, 1) == found.whole
    assert LayerCounts(whole=1, state=1) == found.counts
    assert 4 * (3 * 1024 + 16 * 1024) == found.state_bytes


def test_a_model_without_attention_needs_no_heads() -> None:
    found = shape(num_attention_heads=None, layer_types=["mamba"] * 4, mamba_d_conv=4, mamba_d_state=16, mamba_expand=2)
    assert ("", Cache()) == (found.fault, found.whole)
    assert found.state_bytes


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"num_hidden_layers": None}, "config.json: num_hidden_layers is missing: how many layers there are"),
        ({"num_hidden_layers": "4"}, "config.json: num_hidden_layers is '4': want a whole number from 1 to 10000"),
        ({"num_hidden_layers": -4}, "config.json: num_hidden_layers is '-4': want"),
        ({"num_attention_heads": None}, "config.json: num_attention_heads is missing"),
        ({"num_key_value_heads": True}, "config.json: num_key_value_heads is 'True': want"),
        ({"hidden_size": None}, "config.json: hidden_size is missing"),
        ({"hidden_size": 500}, "config.json: head_dim is missing: hidden_size 500 does not divide by 8 heads"),
        ({"kv_lora_rank": 512}, "config.json: qk_rope_head_dim is missing"),
        ({"layer_types": ["full_attention"]}, "config.json: layer_types is no list of 4 layers"),
        ({"layer_types": ["ring"] * 4}, "config.json: layer_types names 'ring', whose cache is not known"),
        ({"layer_types": ["sliding_attention"] * 4}, "config.json: sliding_window is missing"),
        ({"layer_types": ["mamba"] * 4}, "config.json: some of its layers carry a state whose size"),
        (
            {"layer_types": ["mamba"] * 4, "mamba_d_conv": 4},
            "config.json: mamba_d_state is missing: how large a state is",
        ),
        ({"hybrid_override_pattern": "MX"}, "config.json: hybrid_override_pattern is 'MX'"),
    ],
)
def test_what_is_missing_or_wrong_is_named_with_its_file_and_field(changes: dict[str, Any], fault: str) -> None:
    found = shape(**changes)
    assert found.fault.startswith(fault)
    assert Cache() == found.whole


@pytest.mark.parametrize(
    ("fields", "keys"),
    [
        ({"n_layer": 2, "n_head": 4, "n_embd": 64}, 2 * 64 * 2),
        ({"num_layers": 2, "num_heads": 4, "d_model": 64}, 2 * 64 * 2),
        ({"n_layer": 2, "n_head": 4, "hidden_size": 64, "multi_query": True}, 2 * 16 * 2),
    ],
)
def test_older_models_name_their_fields_otherwise(fields: dict[str, Any], keys: int) -> None:
    found = weights_of_config(fields, 1, "config.json").shape
    assert found is not None
    assert (keys, "") == (found.whole.keys, found.fault)
