"""Turn a Hugging Face Llama folder into an f16 GGUF file, with `gguf` and numpy alone.

From the root of the repository: `python -m models.tiny.export FOLDER FILE.gguf`.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np

NAME = "weft-tiny"
_BLOCK_TENSORS = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
_OUTER_TENSORS = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output"}
_SAFETENSORS_TYPES = {"F16": np.float16, "F32": np.float32}

Json = dict[str, Any]


def read_json(path: Path) -> Json:
    """Read a JSON object."""
    return json.loads(path.read_text())


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Read all tensors: eight bytes of header length, a JSON header, then the bytes it points into."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            flat = np.frombuffer(data[start + first : start + last], dtype=_SAFETENSORS_TYPES[entry["dtype"]])
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


def interleave(rows: np.ndarray, heads: int) -> np.ndarray:
    """Reorder a query or key matrix: Hugging Face rotates halves, llama.cpp rotates neighbours."""
    halves = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
    return halves.swapaxes(1, 2).reshape(rows.shape)


def gguf_tensor(name: str, value: np.ndarray, config: Json) -> tuple[str, np.ndarray]:
    """Give a tensor the name, order and type that llama.cpp wants; norms must be f32, or it aborts."""
    parts = name.removeprefix("model.").removesuffix(".weight").split(".")
    if parts[0] == "layers":
        kind = _BLOCK_TENSORS[".".join(parts[2:])]
        name = f"blk.{parts[1]}.{kind}.weight"
        if kind == "attn_q":
            value = interleave(value, config["num_attention_heads"])
        elif kind == "attn_k":
            value = interleave(value, config["num_key_value_heads"])
    else:
        name = f"{_OUTER_TENSORS[parts[0]]}.weight"
    return name, np.ascontiguousarray(value.astype(np.float32 if value.ndim == 1 else np.float16))


def _describe_network(writer: gguf.GGUFWriter, config: Json) -> None:
    writer.add_name(NAME)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)


def _describe_tokenizer(writer: gguf.GGUFWriter, config: Json, tokenizer: Json, template: str) -> None:
    names = {number: text for text, number in tokenizer["model"]["vocab"].items()}
    names |= {token["id"]: token["content"] for token in tokenizer["added_tokens"]}
    special = {token["id"] for token in tokenizer["added_tokens"] if token["special"]}
    numbers = range(config["vocab_size"])
    writer.add_tokenizer_model("gpt2")
    # With "default", or none, llama.cpp cuts the text in other places and says nothing.
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([names[number] for number in numbers])
    writer.add_token_types(
        [gguf.TokenType.CONTROL if number in special else gguf.TokenType.NORMAL for number in numbers]
    )
    merges = tokenizer["model"]["merges"]
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in merges])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_pad_token_id(config["pad_token_id"])
    writer.add_add_bos_token(False)
    writer.add_chat_template(template)


def export(folder: Path, target: Path) -> None:
    """Write the model of a folder as one GGUF file."""
    config = read_json(folder / "config.json")
    writer = gguf.GGUFWriter(target, "llama")
    _describe_network(writer, config)
    template = (folder / "chat_template.jinja").read_text()
    _describe_tokenizer(writer, config, read_json(folder / "tokenizer.json"), template)
    for name, value in read_safetensors(folder / "model.safetensors").items():
        writer.add_tensor(*gguf_tensor(name, value, config))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    """Export from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the Hugging Face folder")
    parser.add_argument("target", type=Path, help="the GGUF file to write")
    options = parser.parse_args()
    export(options.folder, options.target)
    print(f"wrote {options.target}, {options.target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
