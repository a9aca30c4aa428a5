"""What a GGUF header says of a model's cache, as llama.cpp was seen to lay it out (`bench/claims.py`)."""

from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
from weft_contracts.facts.shape import Cache, ModelShape
from weft_gguf.header import read_header
from weft_gguf.weights import weights_of_header

Keys = Callable[[gguf.GGUFWriter], object]


def written(path: Path, architecture: str, layers: int, keys: Keys) -> Path:
    model = gguf.GGUFWriter(path / f"{architecture}.gguf", architecture)
    model.add_block_count(layers)
    model.add_embedding_length(64)
    keys(model)
    model.add_tensor("token_embd.weight", np.zeros((10, 64), np.float16))
    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_tensors_to_file()
    model.close()
    return path / f"{architecture}.gguf"


def shape_of(path: Path, architecture: str, layers: int, keys: Keys) -> ModelShape:
    found = weights_of_header(read_header(written(path, architecture, layers, keys))).shape
    assert found is not None
    return found


def attention(model: gguf.GGUFWriter) -> None:
    model.add_head_count(8)
    model.add_head_count_kv(2)
    model.add_key_length(16)
    model.add_value_length(32)
    model.add_feed_forward_length(96)


def layers(count: int) -> Cache:
    """Two heads, keys of 16 values and values of 32, each of 16 bits."""
    return Cache(keys=count * 2 * 16 * 2, values=count * 2 * 32 * 2)


def test_a_plain_model_keeps_every_token_in_each_layer(tmp_path: Path) -> None:
    found = shape_of(tmp_path, "llama", 3, attention)
    assert (layers(3), Cache(), 0, 0) == (found.whole, found.windowed, found.window_tokens, found.state_bytes)
    assert (8 * 16, 96) == (found.width, found.inner)


def test_of_architectures_with_windows_the_last_layer_of_each_period_keeps_every_token(tmp_path: Path) -> None:
    def keys(model: gguf.GGUFWriter) -> None:
        attention(model)
        model.add_sliding_window(512)

    for architecture, whole, windowed in (("gemma2", 3, 3), ("gemma3", 1, 5), ("gpt-oss", 3, 3), ("cohere2", 1, 5)):
        found = shape_of(tmp_path, architecture, 6, keys)
        assert (layers(whole), layers(windowed), 512) == (found.whole, found.windowed, found.window_tokens)
    other = shape_of(tmp_path, "llama", 6, keys)
    assert (layers(6), 0) == (other.whole, other.window_tokens)


def test_a_period_that_the_file_tells_stands_over_the_architectures(tmp_path: Path) -> None:
    def keys(model: gguf.GGUFWriter) -> None:
        attention(model)
        model.add_sliding_window(512)
        model.add_uint32("gemma3.attention.sliding_window_pattern", 3)

    found = shape_of(tmp_path, "gemma3", 6, keys)
    assert (layers(2), layers(4)) == (found.whole, found.windowed)


def latent(*, lengths_of_heads: bool) -> Keys:
    def keys(model: gguf.GGUFWriter) -> None:
        model.add_head_count(8)
        model.add_head_count_kv(1 if lengths_of_heads else 8)
        model.add_kv_lora_rank(128)
        model.add_rope_dimension_count(32)
        model.add_key_length(160 if lengths_of_heads else 96)
        model.add_value_length(128 if lengths_of_heads else 64)
        if lengths_of_heads:
            model.add_key_length_mla(96)
            model.add_value_length_mla(64)

    return keys


def test_latent_attention_keeps_compressed_keys_alone(tmp_path: Path) -> None:
    assert Cache(keys=2 * 160 * 2) == shape_of(tmp_path, "deepseek2", 2, latent(lengths_of_heads=True)).whole


def test_a_file_of_before_keeps_all_heads_of_latent_attention(tmp_path: Path) -> None:
    found = shape_of(tmp_path, "deepseek2", 2, latent(lengths_of_heads=False)).whole
    assert Cache(keys=2 * 8 * 96 * 2, values=2 * 8 * 64 * 2) == found


def test_layers_without_heads_carry_a_state(tmp_path: Path) -> None:
    def mixed(model: gguf.GGUFWriter) -> None:
        model.add_head_count(8)
        model.add_head_count_kv([0, 2, 0])
        model.add_key_length(16)
        model.add_value_length(32)
        model.add_ssm_conv_kernel(4)
        model.add_ssm_inner_size(128)
        model.add_ssm_state_size(16)

    def mamba(model: gguf.GGUFWriter) -> None:
        model.add_head_count(0)
        model.add_head_count_kv(0)
        model.add_ssm_conv_kernel(4)
        model.add_ssm_inner_size(128)
        model.add_ssm_state_size(16)

    each = 4 * (3 * 128 + 128 * 16)
    some = shape_of(tmp_path, "jamba", 3, mixed)
    assert (layers(1), 2 * each) == (some.whole, some.state_bytes)
    pure = shape_of(tmp_path, "mamba", 3, mamba)
    assert (Cache(), 3 * each, 2 * 128) == (pure.whole, pure.state_bytes, pure.inner)


def test_of_experts_those_that_work_on_a_token_count_for_activations(tmp_path: Path) -> None:
    def keys(model: gguf.GGUFWriter) -> None:
        attention(model)
        model.add_expert_count(64)
        model.add_expert_used_count(8)
        model.add_expert_feed_forward_length(48)

    assert 8 * 48 == shape_of(tmp_path, "qwen3moe", 2, keys).inner
