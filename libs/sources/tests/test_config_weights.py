"""What a folder's `config.json` says of the memory that a token takes."""

from typing import Any

import pytest
from weft_gguf.weights import KV_VALUE_BYTES
from weft_sources.config_weights import weights_of_config
from weft_sources.refused import SourceRefused


def test_latent_attention_keeps_one_compressed_vector_and_its_positions_a_token_and_layer() -> None:
    config = {"num_hidden_layers": 3, "num_attention_heads": 4, "kv_lora_rank": 512, "qk_rope_head_dim": 64}

    weights = weights_of_config(config, 1, "config.json")

    assert 3 * (512 + 64) * KV_VALUE_BYTES == weights.kv_bytes_per_token


def test_a_single_head_counts_and_what_is_no_number_is_none() -> None:
    config = {"num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": True, "head_dim": "64"}

    weights = weights_of_config(config, 1, "config.json")

    assert (1, 1, 1) == (weights.layers, weights.heads, weights.kv_heads)


def test_the_heads_that_look_at_pictures_are_counted_apart_from_those_of_the_text() -> None:
    text = {"num_hidden_layers": 1, "num_attention_heads": 8}

    for named in ("num_attention_heads", "num_heads"):
        weights = weights_of_config({"text_config": text, "vision_config": {named: 16}}, 1, "config.json")
        assert (8, 16) == (weights.heads, weights.vision_heads)
    assert 0 == weights_of_config(text, 1, "config.json").vision_heads


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"text_config": "x"}, "o/m has a text_config of another shape than any model's: want a JSON object, or none"),
        ({"vision_config": [1]}, "o/m has a vision_config of another shape"),
        ({"architectures": 5}, "o/m has architectures of another shape than any model's: want a list of names"),
        ({"architectures": [["x"]]}, "o/m has architectures of another shape"),
        ({"architectures": {"a": 1}}, "o/m has architectures of another shape"),
        ({"model_type": {"a": 1}}, "o/m has architectures of another shape"),
        ({"architectures": ["x" * 100_000]}, "want at most 128 printable characters"),
        ({"architectures": ["\ud800"]}, "o/m names the architecture '?': want at most 128 printable"),
        ({"num_hidden_layers": 10**39}, f"o/m has 1{'0' * 39} as num_hidden_layers: want at most 10000"),
        ({"text_config": {"max_position_embeddings": 1 << 60}}, "as max_position_embeddings: want at most 2147483648"),
        (
            {"num_hidden_layers": 9999, "num_attention_heads": 1 << 30, "head_dim": 1 << 30},
            "o/m: the cache of one token would take",
        ),
    ],
)
def test_a_shape_or_a_number_that_no_model_has_is_refused_with_its_place_and_what_is_right(
    config: dict[str, Any], why: str
) -> None:
    with pytest.raises(SourceRefused) as refused:
        weights_of_config(config, 1, "o/m")
    assert why in str(refused.value)
    assert len(str(refused.value)) < 400


def test_parts_that_are_null_or_empty_are_none() -> None:
    config: dict[str, Any] = {
        "text_config": None,
        "vision_config": {},
        "architectures": [],
        "model_type": "mine",
        "head_dim": [1, 2],
    }
    assert "mine" == weights_of_config(config, 1, "config.json").architecture
    assert "" == weights_of_config({"architectures": None}, 1, "config.json").architecture


def test_more_weights_than_can_be_told_are_refused() -> None:
    with pytest.raises(SourceRefused, match="the weights would take"):
        weights_of_config({}, 1 << 60, "o/m")
