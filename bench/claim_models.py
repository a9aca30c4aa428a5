"""Models of random weights, each of another sort, as GGUF files and as folders of safetensors. Not a script."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import gguf
import numpy as np
from weft_testing.made_models import (
    MERGES,
    Weights,
    add_tokenizer,
    vocabulary_of,
    write_out,
    write_safetensors,
    write_small_files,
)

HEAD = 64
CONTEXT = 32_768
Shapes = dict[str, tuple[int, ...]]


class Size(NamedTuple):
    """A model's numbers; half as many KV heads as heads of 64 values, and twice the width inside of a layer."""

    layers: int
    width: int
    vocabulary: int

    @property
    def heads(self) -> int:
        """Attention heads."""
        return self.width // HEAD

    @property
    def kv_heads(self) -> int:
        """Half of them."""
        return max(1, self.heads // 2)

    @property
    def inner(self) -> int:
        """Values of a token inside of a layer."""
        return 2 * self.width


Keys = Callable[[gguf.GGUFWriter], object]


def write_plain(path: Path, size: Size, *, quantised: bool = False) -> Path:
    """A Llama; `quantised`: its matrices in Q8_0."""
    shapes = _around(size) | {"output.weight": (size.vocabulary, size.width)}
    for layer in range(size.layers):
        shapes |= _attention(layer, size) | _forward(layer, size)

    def keys(file: gguf.GGUFWriter) -> None:
        file.add_rope_dimension_count(HEAD)

    return _write(path, "llama", size, size.kv_heads, keys, shapes, quantised=quantised)


def write_windowed(path: Path, size: Size, window: int) -> Path:
    """A Gemma 3: five layers of six keep a window."""
    shapes = _around(size)
    for layer in range(size.layers):
        name = f"blk.{layer}"
        shapes |= _attention(layer, size) | _forward(layer, size)
        shapes |= {f"{name}.{norm}.weight": (size.width,) for norm in ("post_attention_norm", "post_ffw_norm")}
        shapes |= {f"{name}.{norm}.weight": (HEAD,) for norm in ("attn_q_norm", "attn_k_norm")}

    def keys(file: gguf.GGUFWriter) -> None:
        file.add_sliding_window(window)
        file.add_key_length(HEAD)
        file.add_value_length(HEAD)

    return _write(path, "gemma3", size, size.kv_heads, keys, shapes)


def write_experts(path: Path, size: Size, experts: int) -> Path:
    """A Llama with so many experts in each layer, two of which work on a token."""
    shapes = _around(size) | {"output.weight": (size.vocabulary, size.width)}
    for layer in range(size.layers):
        name = f"blk.{layer}"
        shapes |= _attention(layer, size)
        shapes[f"{name}.ffn_norm.weight"] = (size.width,)
        shapes[f"{name}.ffn_gate_inp.weight"] = (experts, size.width)
        shapes |= {f"{name}.ffn_{part}_exps.weight": (experts, size.inner, size.width) for part in ("gate", "up")}
        shapes[f"{name}.ffn_down_exps.weight"] = (experts, size.width, size.inner)

    def keys(file: gguf.GGUFWriter) -> None:
        file.add_expert_count(experts)
        file.add_expert_used_count(2)
        file.add_rope_dimension_count(HEAD)

    return _write(path, "llama", size, size.kv_heads, keys, shapes)


def write_latent(path: Path, size: Size, *, compressed: bool) -> Path:
    """A DeepSeek 2 with latent attention. Not `compressed`: as files were before llama.cpp kept the latent vectors."""
    rank, turned, plain, asked = 128, 32, HEAD, 64
    shapes = _around(size) | {"output.weight": (size.vocabulary, size.width)}
    for layer in range(size.layers):
        name = f"blk.{layer}"
        shapes |= _forward(layer, size)
        shapes |= {
            f"{name}.attn_norm.weight": (size.width,),
            f"{name}.attn_q_a.weight": (asked, size.width),
            f"{name}.attn_q_a_norm.weight": (asked,),
            f"{name}.attn_q_b.weight": (size.heads * (plain + turned), asked),
            f"{name}.attn_kv_a_mqa.weight": (rank + turned, size.width),
            f"{name}.attn_kv_a_norm.weight": (rank,),
            f"{name}.attn_output.weight": (size.width, size.heads * HEAD),
        }
        if compressed:
            shapes[f"{name}.attn_k_b.weight"] = (size.heads, rank, plain)
            shapes[f"{name}.attn_v_b.weight"] = (size.heads, HEAD, rank)
        else:
            shapes[f"{name}.attn_kv_b.weight"] = (size.heads * (plain + HEAD), rank)

    def keys(file: gguf.GGUFWriter) -> None:
        file.add_q_lora_rank(asked)
        file.add_kv_lora_rank(rank)
        file.add_rope_dimension_count(turned)
        file.add_leading_dense_block_count(size.layers)
        file.add_expert_count(2)
        file.add_expert_used_count(1)
        file.add_expert_feed_forward_length(64)
        file.add_expert_shared_count(1)
        file.add_expert_weights_scale(1.0)
        file.add_float32("deepseek2.rope.scaling.yarn_log_multiplier", 0.1)
        file.add_key_length(rank + turned if compressed else plain + turned)
        file.add_value_length(rank if compressed else HEAD)
        if compressed:
            file.add_key_length_mla(plain + turned)
            file.add_value_length_mla(HEAD)

    return _write(path, "deepseek2", size, 1 if compressed else size.heads, keys, shapes)


def write_state(path: Path, size: Size) -> Path:
    """A Mamba: no attention, each layer carries a state."""
    inner, state, kernel, rank = 2 * size.width, 16, 4, 16
    shapes = _around(size)
    for layer in range(size.layers):
        name = f"blk.{layer}"
        shapes |= {
            f"{name}.attn_norm.weight": (size.width,),
            f"{name}.ssm_in.weight": (2 * inner, size.width),
            f"{name}.ssm_conv1d.weight": (inner, kernel),
            f"{name}.ssm_conv1d.bias": (inner,),
            f"{name}.ssm_x.weight": (rank + 2 * state, inner),
            f"{name}.ssm_dt.weight": (inner, rank),
            f"{name}.ssm_dt.bias": (inner,),
            f"{name}.ssm_a": (inner, state),
            f"{name}.ssm_d": (inner,),
            f"{name}.ssm_out.weight": (size.width, inner),
        }

    def keys(file: gguf.GGUFWriter) -> None:
        file.add_ssm_conv_kernel(kernel)
        file.add_ssm_inner_size(inner)
        file.add_ssm_state_size(state)
        file.add_ssm_time_step_rank(rank)

    return _write(path, "mamba", size, 0, keys, shapes)


def write_folder(folder: Path, size: Size, dtype: str, **others: object) -> Path:
    """A Llama in a folder with safetensors: `float32`, `float16` or `bfloat16`; `others`: fields of `config.json`."""
    folder.mkdir()
    shapes: Shapes = {
        "model.embed_tokens.weight": (size.vocabulary, size.width),
        "lm_head.weight": (size.vocabulary, size.width),
        "model.norm.weight": (size.width,),
    }
    for layer in range(size.layers):
        name = f"model.layers.{layer}"
        rows = {"q": size.heads, "k": size.kv_heads, "v": size.kv_heads}
        shapes |= {f"{name}.self_attn.{part}_proj.weight": (n * HEAD, size.width) for part, n in rows.items()}
        shapes[f"{name}.self_attn.o_proj.weight"] = (size.width, size.heads * HEAD)
        shapes |= {f"{name}.mlp.{part}_proj.weight": (size.inner, size.width) for part in ("gate", "up")}
        shapes[f"{name}.mlp.down_proj.weight"] = (size.width, size.inner)
        shapes |= {f"{name}.{norm}.weight": (size.width,) for norm in ("input_layernorm", "post_attention_layernorm")}
    write_safetensors(folder / "model.safetensors", _Drawn(shapes), dtype)
    config = {
        "hidden_size": size.width,
        "intermediate_size": size.inner,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "num_key_value_heads": size.kv_heads,
        "vocab_size": size.vocabulary,
        "max_position_embeddings": CONTEXT,
        "torch_dtype": dtype,
    }
    write_small_files(folder, config | dict(others), _words(size))
    return folder


class _Drawn(Mapping[str, Weights]):
    """Random weights, drawn when they are asked for, in order; vectors are ones."""

    def __init__(self, shapes: Shapes) -> None:
        self._shapes, self._draw = shapes, np.random.default_rng(7)

    def __getitem__(self, name: str) -> Weights:
        shape = self._shapes[name]
        if len(shape) == 1:
            return np.ones(shape, np.float32)
        return self._draw.standard_normal(shape, dtype=np.float32) * np.float32(0.02)

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)


def _words(size: Size) -> list[str]:
    known = vocabulary_of(MERGES)
    return [*known, *(f"<w{place}>" for place in range(size.vocabulary - len(known)))]


def _around(size: Size) -> Shapes:
    return {"token_embd.weight": (size.vocabulary, size.width), "output_norm.weight": (size.width,)}


def _attention(layer: int, size: Size) -> Shapes:
    name = f"blk.{layer}"
    rows = {"q": size.heads, "k": size.kv_heads, "v": size.kv_heads}
    shapes: Shapes = {f"{name}.attn_{part}.weight": (heads * HEAD, size.width) for part, heads in rows.items()}
    return shapes | {
        f"{name}.attn_output.weight": (size.width, size.heads * HEAD),
        f"{name}.attn_norm.weight": (size.width,),
    }


def _forward(layer: int, size: Size) -> Shapes:
    name = f"blk.{layer}"
    shapes: Shapes = {f"{name}.ffn_{part}.weight": (size.inner, size.width) for part in ("gate", "up")}
    return shapes | {f"{name}.ffn_down.weight": (size.width, size.inner), f"{name}.ffn_norm.weight": (size.width,)}


def _write(
    path: Path, architecture: str, size: Size, kv_heads: int, keys: Keys, shapes: Shapes, *, quantised: bool = False
) -> Path:
    words, file = _words(size), gguf.GGUFWriter(path, architecture)
    file.add_context_length(CONTEXT)
    file.add_embedding_length(size.width)
    file.add_block_count(size.layers)
    file.add_feed_forward_length(size.inner if kv_heads else 0)
    file.add_head_count(size.heads if kv_heads else 0)
    file.add_head_count_kv(kv_heads)
    file.add_layer_norm_rms_eps(1e-5)
    add_tokenizer(file, words)
    keys(file)
    draw = np.random.default_rng(7)
    for name, shape in shapes.items():
        if len(shape) == 1 or "ssm_a" in name or "ssm_conv" in name:
            file.add_tensor(name, np.ones(shape, np.float32))
            continue
        values = draw.standard_normal(shape, dtype=np.float32) * 0.02
        if quantised:
            kind = gguf.GGMLQuantizationType.Q8_0
            file.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            file.add_tensor(name, values.astype(np.float16))
    write_out(file)
    return path
