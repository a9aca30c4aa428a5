"""GGUF files that tests make out of others: a model in several files, and an adapter (LoRA) for it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np

_OF_THE_WRITER = ("GGUF.", "split.", "general.architecture")
"""Values that a writer makes by itself."""


def split_model(model: Path, stem: Path, tensors: int) -> list[Path]:
    """Write a model as files `STEM-00001-of-0000N.gguf` with at most so many tensors each, and answer them in order."""
    reader: Any = gguf.GGUFReader(model)
    architecture = reader.fields["general.architecture"].contents()
    writer: Any = gguf.GGUFWriter(stem.with_suffix(".gguf"), architecture, split_max_tensors=tensors)
    for name, field in reader.fields.items():
        if not name.startswith(_OF_THE_WRITER):
            inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), field.types[0], sub_type=inner)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    _write(writer)
    return sorted(stem.parent.glob(f"{stem.name}-*-of-*.gguf"))


def write_lora(
    path: Path,
    model: Path,
    *,
    rank: int = 4,
    alpha: float = 64.0,
    seed: int = 7,
    architecture: str | None = None,
    names: Sequence[str] = ("attn_q.weight", "attn_v.weight"),
) -> Path:
    """Write a LoRA with random matrices of low rank for a model's blocks."""
    reader: Any = gguf.GGUFReader(model)
    draw = np.random.default_rng(seed)
    writer: Any = gguf.GGUFWriter(path, architecture or reader.fields["general.architecture"].contents())
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    for tensor in reader.tensors:
        if tensor.name.startswith("blk.") and tensor.name.endswith(tuple(names)):
            inner, outer = (int(length) for length in tensor.shape)
            for side, shape in (("a", (rank, inner)), ("b", (outer, rank))):
                writer.add_tensor(f"{tensor.name}.lora_{side}", draw.normal(0, 0.2, shape).astype(np.float32))
    _write(writer)
    return path


def _write(writer: Any) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
