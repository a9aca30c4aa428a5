"""Reads what a GGUF file says about itself, in milliseconds, without reading its tensors or vocabulary.

The format is described in ggml's `docs/gguf.md`. Arrays of strings (vocabulary, merges) are hopped over.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from weft_contracts.shown import shown

from weft_gguf.facts import Facts
from weft_gguf.gguf_header import GgufHeader
from weft_gguf.reader import GgufError, HeaderReader, NotGguf, Tensor, TruncatedGguf, Value
from weft_gguf.shape import shape_of
from weft_gguf.value_types import TENSOR_TYPES, tensor_bytes

__all__ = ["GgufError", "GgufHeader", "NotGguf", "TruncatedGguf", "read_header"]

DEFAULT_ALIGNMENT: Final = 32
MAX_LAYERS: Final = 10_000
MAX_ARCHITECTURE: Final = 128
"""Characters of its name."""
MAX_NUMBER: Final = 1 << 53
"""As a fact may say it."""
BLOCK: Final = re.compile(r"blk\.([0-9]{1,5})\.")
OUTPUT: Final = ("output.", "output_", "cls.", "cls_")
"""How the names of tensors begin that make the output of what the last layer made."""
EMBEDDING: Final = "token_embd.weight"


def read_header(path: str | Path) -> GgufHeader:
    """Read a model file's header; about 10 ms for a vocabulary of 128,000 tokens.

    Of a model in several files it tells what stands in this one: `split.read_model` reads them all.
    Raises NotGguf for another kind of file or a broken header, TruncatedGguf when the file is shorter than its
    header says, OSError when it can't be read. The messages are one sentence each.
    """
    part = read_part(Path(path))
    return header_of((part,))


@dataclass(frozen=True, slots=True)
class Part:
    """What one file's header holds, before it is asked what it means."""

    name: str
    version: int
    values: dict[str, Value]
    tensors: list[Tensor]
    sizes: tuple[int, ...]
    """bytes of each tensor"""
    file_bytes: int

    @property
    def facts(self) -> Facts:
        """Its values, to be asked with their types."""
        return Facts(self.name, self.values)


def read_part(path: Path) -> Part:
    """Read one file's header, whether it is a whole model or not. Raises like `read_header`."""
    with path.open("rb") as file:
        return read_part_from(file, path.name, os.fstat(file.fileno()).st_size)


def read_part_from(file: BinaryIO, name: str, file_bytes: int) -> Part:
    """Read the header of an open file that can seek, such as one that is read by ranges from elsewhere.

    `name` is for messages, `file_bytes` how long the file is said to be: no byte beyond is asked for, and no more
    than the header's, in pieces of 8 MiB. Raises like `read_header`.
    """
    try:
        return _read(file, name, file_bytes, hurried=True)
    except GgufError:
        # hopping over short strings assumes what nearly every file keeps; be exact before saying no
        return _read(file, name, file_bytes, hurried=False)


def _read(file: BinaryIO, name: str, file_bytes: int, *, hurried: bool) -> Part:
    file.seek(0)
    reader = HeaderReader(file, name, file_bytes, hurried=hurried)
    version, tensor_count, value_count = reader.preamble()
    values = reader.values(value_count)
    tensors = reader.tensors(tensor_count)
    alignment = Facts(name, values).integer("general.alignment", DEFAULT_ALIGNMENT)
    if alignment < 1:
        raise NotGguf(f"{name} is not a readable GGUF file: its alignment is {alignment}")
    data_start = -(-reader.position // alignment) * alignment
    sizes: list[int] = []
    end = data_start
    for tensor in tensors:
        size = tensor_bytes(tensor.type, tensor.shape)
        if size is None:
            raise NotGguf(
                f"{name} is not a readable GGUF file: tensor {tensor.name} has the unknown type {tensor.type}"
            )
        sizes.append(size)
        end = max(end, data_start + tensor.offset + size)
    if file_bytes < end:
        raise TruncatedGguf(f"{name} is truncated: {file_bytes} of {end} bytes")
    return Part(name, version, values, tensors, tuple(sizes), file_bytes)


def header_of(parts: Sequence[Part]) -> GgufHeader:
    """What the files of one model say together; all but tensors stands in the first. Raises NotGguf."""
    first, facts = parts[0], parts[0].facts
    architecture = facts.text("general.architecture")
    if not architecture:
        raise NotGguf(f"{first.name} is not a readable GGUF file: it names no architecture")
    if len(architecture) > MAX_ARCHITECTURE or not architecture.isprintable():
        named = f"it names the architecture {shown(architecture)!r}"
        raise NotGguf(f"{first.name} is not a readable GGUF file: {named}")
    layers = facts.integer(f"{architecture}.block_count", 0)
    if not 0 <= layers <= MAX_LAYERS:
        raise NotGguf(f"{first.name} is not a readable GGUF file: it claims {layers} layers")
    by_layer = [0] * layers
    by_type: dict[str, int] = {}
    outside: dict[str, int] = {}
    for tensor, size in (
        (tensor, size) for part in parts for tensor, size in zip(part.tensors, part.sizes, strict=True)
    ):
        type_name = TENSOR_TYPES[tensor.type].name
        by_type[type_name] = by_type.get(type_name, 0) + size
        block = BLOCK.match(tensor.name)
        if block is not None and int(block[1]) < len(by_layer):
            by_layer[int(block[1])] += size
        else:
            outside[tensor.name] = outside.get(tensor.name, 0) + size
    own_output = sum(size for name, size in outside.items() if name.startswith(OUTPUT))
    borrowed = 0 if "output.weight" in outside else outside.get(EMBEDDING, 0)

    heads = facts.per_layer(f"{architecture}.attention.head_count", layers)
    kv_heads = facts.per_layer(f"{architecture}.attention.head_count_kv", layers) or heads
    embedding = facts.integer(f"{architecture}.embedding_length", 0)
    head_length = embedding // max(heads) if heads and max(heads) else 0
    lora = facts.integer(f"{architecture}.attention.kv_lora_rank", 0)
    header = GgufHeader(
        version=first.version,
        architecture=architecture,
        name=facts.text("general.name"),
        layers=layers,
        embedding_length=embedding,
        heads=max(heads, default=0),
        kv_heads=kv_heads,
        key_length=facts.integer(f"{architecture}.attention.key_length", head_length),
        value_length=facts.integer(f"{architecture}.attention.value_length", head_length),
        latent_length=lora + facts.integer(f"{architecture}.rope.dimension_count", 0) if lora else 0,
        context_length=facts.integer(f"{architecture}.context_length", 0),
        vocabulary=facts.count("tokenizer.ggml.tokens") or facts.integer(f"{architecture}.vocab_size", 0),
        experts=facts.integer(f"{architecture}.expert_count", 0),
        tensors=sum(len(part.tensors) for part in parts),
        tensor_bytes=sum(by_type.values()),
        layer_bytes=tuple(by_layer),
        output_bytes=own_output + borrowed,
        input_bytes=sum(outside.values()) - own_output,
        file_bytes=sum(part.file_bytes for part in parts),
        tensor_types=tuple(sorted(by_type, key=lambda name: -by_type[name])),
        splits=max(1, facts.integer("split.count", 1)),
        kind=facts.text("general.type") or "model",
        adapter=facts.text("adapter.type"),
        causal=facts.flag(f"{architecture}.attention.causal") is not False,
        pooling=facts.integer(f"{architecture}.pooling_type", 0),
        chat_template=facts.text("tokenizer.chat_template"),
        tokenizer=facts.text("tokenizer.ggml.model"),
        tokenizer_pre=facts.text("tokenizer.ggml.pre"),
        bos_token=facts.maybe_integer("tokenizer.ggml.bos_token_id"),
        eos_token=facts.maybe_integer("tokenizer.ggml.eos_token_id"),
        add_bos=facts.flag("tokenizer.ggml.add_bos_token"),
    )
    _check(header, first.name)
    return replace(header, shape=shape_of(facts, header))


def _check(header: GgufHeader, file: str) -> None:
    """Raises NotGguf where a number that a claim is computed from is none of any model."""
    claims = {
        "attention heads": header.heads,
        "KV heads": min(header.kv_heads, default=0),
        "KV heads in its largest layer": max(header.kv_heads, default=0),
        "values in a head's key": header.key_length,
        "values in a head's value": header.value_length,
        "values in a latent vector": header.latent_length,
        "tokens of context": header.context_length,
        "bytes": header.file_bytes,
        "bytes of KV cache for a token": header.kv_bytes_per_token(),
    }
    for what, number in claims.items():
        if not 0 <= number <= MAX_NUMBER:
            raise NotGguf(f"{file} is not a readable GGUF file: it claims {number:.0f} {what}")
