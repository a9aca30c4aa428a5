"""Tiny models made for tests: random weights and ones that recite, as GGUF files and as folders of safetensors."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import gguf
import numpy as np

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_letters() -> list[str]:
    """The 256 letters that stand for bytes in a byte-level vocabulary, as GPT-2 chose them."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    letters = dict(zip(plain, map(chr, plain), strict=True))
    letters.update({byte: chr(256 + i) for i, byte in enumerate(others)})
    return [letters[byte] for byte in range(256)]


WIDTH, LAYERS, HEADS, INNER, CONTEXT = 64, 2, 2, 128, 512
MERGES = [f"{a} {b}" for a in "bdfgklmnprstvz" for b in "aeiou"]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
Weights = np.ndarray[Any, np.dtype[Any]]


def vocabulary_of(merges: Sequence[str]) -> list[str]:
    """Control tokens, bytes, and what each merge makes."""
    return [*SPECIAL, *byte_letters(), *(merge.replace(" ", "") for merge in merges)]


VOCABULARY = vocabulary_of(MERGES)


def write_model(
    path: Path,
    embedding: Weights,
    output: Weights,
    block: Callable[[int, int], Weights],
    *,
    merges: Sequence[str] = MERGES,
) -> Path:
    """A Llama of two blocks with a byte-level tokenizer; `block` makes the weights of a block by shape.

    `merges`: each of two tokens, into one that no other makes."""
    vocabulary = vocabulary_of(merges)
    model = gguf.GGUFWriter(path, "llama")
    model.add_name("made for a test")
    model.add_context_length(CONTEXT)
    model.add_embedding_length(WIDTH)
    model.add_block_count(LAYERS)
    model.add_feed_forward_length(INNER)
    model.add_head_count(HEADS)
    model.add_head_count_kv(HEADS)
    model.add_layer_norm_rms_eps(1e-5)
    model.add_rope_dimension_count(WIDTH // HEADS)
    add_tokenizer(model, vocabulary, merges)
    model.add_tensor("token_embd.weight", embedding.astype(np.float16))
    model.add_tensor("output.weight", output.astype(np.float16))
    model.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    for layer in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            model.add_tensor(f"blk.{layer}.{name}.weight", block(WIDTH, WIDTH).astype(np.float16))
        for name in ("ffn_gate", "ffn_up"):
            model.add_tensor(f"blk.{layer}.{name}.weight", block(INNER, WIDTH).astype(np.float16))
        model.add_tensor(f"blk.{layer}.ffn_down.weight", block(WIDTH, INNER).astype(np.float16))
        for name in ("attn_norm", "ffn_norm"):
            model.add_tensor(f"blk.{layer}.{name}.weight", np.ones(WIDTH, np.float32))
    write_out(model)
    return path


def add_tokenizer(model: gguf.GGUFWriter, words: Sequence[str], merges: Sequence[str] = MERGES) -> None:
    """A byte-level tokenizer with `SPECIAL` as the first words, and the template."""
    model.add_vocab_size(len(words))
    model.add_tokenizer_model("gpt2")
    model.add_tokenizer_pre("gpt-2")
    model.add_token_list(words)
    plain = len(words) - len(SPECIAL)
    model.add_token_types([gguf.TokenType.CONTROL] * len(SPECIAL) + [gguf.TokenType.NORMAL] * plain)
    model.add_token_merges(merges)
    model.add_bos_token_id(0)
    model.add_eos_token_id(2)
    model.add_add_bos_token(False)
    model.add_chat_template(TEMPLATE)


def write_out(model: gguf.GGUFWriter) -> None:
    """Write a GGUF file with all that was added."""
    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_tensors_to_file()
    model.close()


def write_random_model(path: Path) -> Path:
    """A model of random weights that speaks printable ASCII."""
    draw = np.random.default_rng(7)
    output = draw.normal(0, 1, (len(VOCABULARY), WIDTH))
    for i, token in enumerate(VOCABULARY):
        if token in SPECIAL or not (token.isascii() and token.isprintable()):
            output[i] = 0
    return write_model(
        path,
        draw.normal(0, 1, (len(VOCABULARY), WIDTH)),
        output,
        lambda rows, columns: draw.normal(0, 1.5 / np.sqrt(columns), (rows, columns)),
    )


def write_reciting_model(path: Path, text: str) -> Path:
    """A model that says `text` again and again, byte by byte; no byte may occur twice in it.

    Its blocks do nothing, so the next token depends on the last one alone: each byte leads to the next.
    """
    embedding = np.zeros((len(VOCABULARY), WIDTH))
    embedding[:, 0] = 1
    output = np.zeros((len(VOCABULARY), WIDTH))
    tokens = [len(SPECIAL) + byte for byte in text.encode()]
    output[tokens[0], 0] = 1
    for i, token in enumerate(tokens):
        embedding[token] = 0
        embedding[token, i + 1] = 1
        output[tokens[(i + 1) % len(tokens)], i + 1] = 1
    return write_model(path, embedding, output, lambda rows, columns: np.zeros((rows, columns)))


def write_random_folder(folder: Path) -> Path:
    """Random weights that speak printable ASCII, as Hugging Face models lie in a folder."""
    draw = np.random.default_rng(7)
    output = draw.normal(0, 1, (len(VOCABULARY), WIDTH))
    for i, token in enumerate(VOCABULARY):
        if token in SPECIAL or not (token.isascii() and token.isprintable()):
            output[i] = 0
    embedding = draw.normal(0, 1, (len(VOCABULARY), WIDTH))
    return write_folder(
        folder, embedding, output, lambda rows, columns: draw.normal(0, 1.5 / np.sqrt(columns), (rows, columns))
    )


def write_folder(
    folder: Path,
    embedding: Weights,
    output: Weights,
    block: Callable[[int, int], Weights],
    *,
    chunks: Sequence[str] = (),
    template: str = TEMPLATE,
) -> Path:
    """A Llama of two blocks in a folder with safetensors. `chunks`: further tokens, each a text of its own."""
    tensors = {"model.embed_tokens.weight": embedding, "lm_head.weight": output}
    tensors["model.norm.weight"] = np.ones(WIDTH)
    shapes = {f"self_attn.{name}_proj": (WIDTH, WIDTH) for name in "qkvo"}
    shapes |= {"mlp.gate_proj": (INNER, WIDTH), "mlp.up_proj": (INNER, WIDTH), "mlp.down_proj": (WIDTH, INNER)}
    for layer in range(LAYERS):
        for name, (rows, columns) in shapes.items():
            tensors[f"model.layers.{layer}.{name}.weight"] = block(rows, columns)
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"model.layers.{layer}.{name}.weight"] = np.ones(WIDTH)
    folder.mkdir()
    write_safetensors(folder / "model.safetensors", tensors)
    config = {
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "vocab_size": len(VOCABULARY) + len(chunks),
        "max_position_embeddings": CONTEXT,
    }
    write_small_files(folder, config, VOCABULARY, chunks=chunks, template=template)
    return folder


def write_small_files(
    folder: Path,
    config: Mapping[str, object],
    words: Sequence[str],
    *,
    chunks: Sequence[str] = (),
    template: str = TEMPLATE,
) -> None:
    """Configuration and tokenizer of a Llama, `config` over what all of these have in common; `words`: as
    `add_tokenizer` takes them; `chunks`: further tokens, each a text of its own."""
    added = [{"id": i, "content": each, "special": True} for i, each in enumerate(SPECIAL)]
    added += [{"id": len(words) + i, "content": each, "special": False} for i, each in enumerate(chunks)]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    letters = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    files: dict[str, Mapping[str, object]] = {
        "config.json": {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "rms_norm_eps": 1e-5,
            "tie_word_embeddings": False,
            "bos_token_id": 0,
            "eos_token_id": 2,
            **config,
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": SPECIAL[0],
            "eos_token": SPECIAL[2],
            "chat_template": template,
        },
        "tokenizer.json": {
            "version": "1.0",
            "added_tokens": [{**plain, **each} for each in added],
            "pre_tokenizer": letters,
            "decoder": letters,
            "model": {"type": "BPE", "vocab": {each: i for i, each in enumerate(words)}, "merges": MERGES},
        },
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))


_DTYPES: Final = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


def write_safetensors(path: Path, tensors: Mapping[str, Weights], dtype: str = "float16") -> None:
    """Weights as `float16`, `float32` or `bfloat16`: a header in JSON with its length before it, then the bytes."""
    header: dict[str, Any] = {}
    data = bytearray()
    for name, tensor in tensors.items():
        begin = len(data)
        data += _written(tensor, dtype)
        header[name] = {"dtype": _DTYPES[dtype], "shape": tensor.shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.write(data)


def _written(tensor: Weights, dtype: str) -> bytes:
    if dtype == "bfloat16":  # the upper half of a float32
        return (tensor.astype("<f4").view(np.uint32) >> 16).astype("<u2").tobytes()
    return tensor.astype("<f4" if dtype == "float32" else "<f2").tobytes()
