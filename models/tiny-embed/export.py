"""Write a trained encoder as an f16 GGUF file, with `gguf` alone."""

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from models.tiny.tokenizer import PADDING_ID, TURN_END_ID

from .network import Encoder, Shape

NAME = "weft-tiny-embed"
_OUTER = {
    "tokens": "token_embd",
    "positions": "position_embd",
    "kinds": "token_types",
    "embedding_norm": "token_embd_norm",
}
_INNER = {
    "query": "attn_q",
    "key": "attn_k",
    "value": "attn_v",
    "output": "attn_output",
    "attention_norm": "attn_output_norm",
    "up": "ffn_up",
    "down": "ffn_down",
    "output_norm": "layer_output_norm",
}
_WHOLE = frozenset({"token_types.weight"})
"""The matrix of which llama.cpp adds a row as it lies there: like everything of one dimension, it must be f32."""


def gguf_name(name: str) -> str:
    """A parameter's name as llama.cpp calls it."""
    parts = name.split(".")
    if parts[0] == "blocks":
        return f"blk.{parts[1]}.{_INNER[parts[2]]}.{parts[3]}"
    return f"{_OUTER[parts[0]]}.{parts[1]}"


def _describe_network(writer: gguf.GGUFWriter, shape: Shape) -> None:
    writer.add_name(NAME)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.blocks)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_layer_norm_eps(shape.norm_epsilon)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_token_type_count(2)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)


def _describe_tokenizer(writer: gguf.GGUFWriter, shape: Shape, tokenizer: dict[str, Any]) -> None:
    names = {number: text for text, number in tokenizer["model"]["vocab"].items()}
    names |= {token["id"]: token["content"] for token in tokenizer["added_tokens"]}
    special = {token["id"] for token in tokenizer["added_tokens"] if token["special"]}
    numbers = range(shape.vocabulary)
    writer.add_tokenizer_model("gpt2")
    # With "default", or none, llama.cpp cuts the text in other places and says nothing.
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([names[number] for number in numbers])
    writer.add_token_types(
        [gguf.TokenType.CONTROL if number in special else gguf.TokenType.NORMAL for number in numbers]
    )
    merges = tokenizer["model"]["merges"]
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in merges])
    writer.add_bos_token_id(PADDING_ID)
    writer.add_eos_token_id(TURN_END_ID)
    writer.add_sep_token_id(TURN_END_ID)
    writer.add_pad_token_id(PADDING_ID)
    # It was trained on bare texts: nothing stands before or after them.
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(False)


def export(network: Encoder, shape: Shape, tokenizer: Path, target: Path) -> None:
    """Write the model as one GGUF file."""
    writer = gguf.GGUFWriter(target, "bert")
    _describe_network(writer, shape)
    _describe_tokenizer(writer, shape, json.loads(tokenizer.read_text()))
    for name, weights in network.state_dict().items():
        value, called = weights.detach().numpy(), gguf_name(name)
        whole = value.ndim == 1 or called in _WHOLE
        writer.add_tensor(called, value.astype(np.float32 if whole else np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
