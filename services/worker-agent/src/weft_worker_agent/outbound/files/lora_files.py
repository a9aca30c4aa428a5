"""Looks at a LoRA adapter's files on this node: a GGUF file, or a folder as peft writes it."""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from weft_contracts.engines import FileFormat
from weft_contracts.facts.values import Weights

from weft_worker_agent.outbound.files.fingerprint import fingerprint
from weft_worker_agent.outbound.files.found import Found, NotFound

CONFIG, TENSORS = "adapter_config.json", "adapter_model.safetensors"
_MAX_HEADER = 16 << 20
_GGUF_LAYER = re.compile(r"blk\.([0-9]{1,5})\.")
_PEFT_LAYER = re.compile(r"\.(?:layers|h|blocks)\.([0-9]{1,5})\.")


def look_at_lora(path: Path, engine: str, formats: Sequence[FileFormat]) -> Found:
    """Look at an adapter for an engine that loads these formats; `weights.layers` is one more than the last layer that
    it changes. Reads headers: call it in a thread. Raises NotFound."""
    if not path.is_absolute():
        raise NotFound(f"{str(path)!r} is no absolute path: workers have no common working folder")
    try:
        os.stat(path)
        weights, parts = _peft(path, engine) if "gguf" not in formats else _gguf(path, engine)
        size = sum(part.stat().st_size for part in parts)
        return Found(path, size, weights.model_copy(update={"fingerprint": fingerprint(parts)}), ())
    except FileNotFoundError as missing:
        raise NotFound(f"{missing.filename or path} does not exist on this node") from None
    except OSError as error:
        raise NotFound(f"{path} can't be read on this node: {error.strerror or error}") from None


def _gguf(path: Path, engine: str) -> tuple[Weights, list[Path]]:
    from weft_gguf.header import GgufError, read_part

    if not path.is_file():
        raise NotFound(f"{path} is no file, and {engine} loads a LoRA adapter from a GGUF file: name the file")
    try:
        part = read_part(path)
    except GgufError as error:
        raise NotFound(f"{path}: {error}") from None
    if (part.facts.text("general.type"), part.facts.text("adapter.type")) != ("adapter", "lora"):
        kind = part.facts.text("general.type") or "model"
        raise NotFound(f"{path} is no LoRA adapter: its header is that of a {kind}")
    weights = Weights(
        format="gguf",
        architecture=part.facts.text("general.architecture"),
        weight_bytes=sum(part.sizes),
        layers=_layers(_GGUF_LAYER, [tensor.name for tensor in part.tensors]),
    )
    return weights, [path]


def _peft(folder: Path, engine: str) -> tuple[Weights, list[Path]]:
    if not folder.is_dir():
        raise NotFound(f"{folder} is no folder, and {engine} loads a LoRA adapter from one with {CONFIG}: name it")
    config, tensors = folder / CONFIG, folder / TENSORS
    for each in (config, tensors):
        if each.exists() and not each.is_file():
            raise NotFound(f"{each} is no ordinary file")
    if config.stat().st_size > _MAX_HEADER:
        raise NotFound(f"{config} is larger than any adapter's configuration")
    kind = _object(config, config.read_bytes()).get("peft_type")
    if kind != "LORA":
        raise NotFound(f"{folder} is no LoRA adapter: its {CONFIG} names the type {kind!r}")
    with tensors.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(_MAX_HEADER, tensors.stat().st_size - 8):
            raise NotFound(f"{tensors} is no safetensors file: its header would take {length} bytes")
        names = [name for name in _object(tensors, file.read(length)) if name != "__metadata__"]
    weights = Weights(
        format="safetensors", weight_bytes=tensors.stat().st_size - 8 - length, layers=_layers(_PEFT_LAYER, names)
    )
    return weights, [config, tensors]


def _object(path: Path, content: bytes) -> dict[str, Any]:
    try:
        body: Any = json.loads(content)
    except ValueError as error:
        raise NotFound(f"{path} holds no readable JSON: {error}") from None
    if not isinstance(body, dict):
        raise NotFound(f"{path} holds no JSON object")
    return cast("dict[str, Any]", body)


def _layers(pattern: re.Pattern[str], names: Sequence[str]) -> int:
    found = [int(match[1]) for name in names if (match := pattern.search(name))]
    return max(found, default=-1) + 1
