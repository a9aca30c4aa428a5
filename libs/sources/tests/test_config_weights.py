"""What a folder's `config.json` says of the memory that a token takes."""

from weft_gguf.weights import KV_VALUE_BYTES
from weft_sources.config_weights import weights_of_config


def test_latent_attention_keeps_one_compressed_vector_and_its_positions_a_token_and_layer() -> None:
    config = {"num_hidden_layers": 3, "num_attention_heads": 4, "kv_lora_rank": 512, "qk_rope_head_dim": 64}

    weights = weights_of_config(config, 1)

    assert 3 * (512 + 64) * KV_VALUE_BYTES == weights.kv_bytes_per_token


def test_a_single_head_counts_and_what_is_no_number_is_none() -> None:
    config = {"num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": True, "head_dim": "64"}

    weights = weights_of_config(config, 1)

    assert (1, 1, 1) == (weights.layers, weights.heads, weights.kv_heads)


def test_the_heads_that_look_at_pictures_are_counted_apart_from_those_of_the_text() -> None:
    text = {"num_hidden_layers": 1, "num_attention_heads": 8}

    for named in ("num_attention_heads", "num_heads"):
        weights = weights_of_config({"text_config": text, "vision_config": {named: 16}}, 1)
        assert (8, 16) == (weights.heads, weights.vision_heads)
    assert 0 == weights_of_config(text, 1).vision_heads
