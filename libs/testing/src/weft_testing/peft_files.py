"""LoRA adapters as peft writes them: a folder with a configuration and a safetensors file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def write_peft(
    folder: Path, tensors: Mapping[str, "np.ndarray[Any, np.dtype[np.float32]]"], *, rank: int, alpha: float = 64.0
) -> Path:
    """Write an adapter whose tensors are named as peft names them, and answer its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "",
        "r": rank,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted({name.rsplit(".lora_", 1)[0].rsplit(".", 1)[-1] for name in tensors}),
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))
    header: dict[str, Any] = {}
    data = b""
    for name, tensor in tensors.items():
        content = np.ascontiguousarray(tensor, np.float32).tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(content)],
        }
        data += content
    named = json.dumps(header).encode()
    (folder / "adapter_model.safetensors").write_bytes(len(named).to_bytes(8, "little") + named + data)
    return folder
