"""Write a trained network as a Hugging Face folder: f16 weights, configuration, tokenizer, chat template."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from models.tiny.network import Llama, Shape
from models.tiny.tokenizer import CHAT_TEMPLATE, PADDING, PADDING_ID, TURN_END, TURN_END_ID


def configuration(shape: Shape) -> dict[str, Any]:
    """Return `config.json` for a network of this shape."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": shape.hidden,
        "intermediate_size": shape.feed_forward,
        "num_hidden_layers": shape.blocks,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.heads,
        "head_dim": shape.head,
        "vocab_size": shape.vocabulary,
        "max_position_embeddings": shape.context,
        "rms_norm_eps": shape.norm_epsilon,
        "rope_theta": shape.rope_base,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "attention_bias": False,
        "mlp_bias": False,
        "torch_dtype": "float16",
        "bos_token_id": PADDING_ID,
        "eos_token_id": TURN_END_ID,
        "pad_token_id": PADDING_ID,
    }


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


def save(folder: Path, network: Llama, shape: Shape, tokenizer: Tokenizer) -> None:
    """Write all files of the model; the folder is made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {f"model.{name}": value.to(torch.float16).contiguous() for name, value in network.state_dict().items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)  # safetensors makes it readable by its owner alone
    _write_json(folder / "config.json", configuration(shape))
    _write_json(
        folder / "generation_config.json",
        {"bos_token_id": PADDING_ID, "eos_token_id": TURN_END_ID, "pad_token_id": PADDING_ID},
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": PADDING,
            "eos_token": TURN_END,
            "pad_token": PADDING,
            "add_bos_token": False,
            "clean_up_tokenization_spaces": False,
            "model_max_length": shape.context,
        },
    )
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE)
