"""Which types the tensors of a safetensors file have, and how many bytes of each, out of its header alone.

The format: eight bytes with the header's length, the header as JSON, the tensors. Their places must fill the file.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from weft_contracts.facts.shape import MOST_TENSOR_TYPES
from weft_contracts.shown import shown

from weft_sources.refused import SourceRefused

MOST_HEADER: Final = 100 << 20
"""Bytes; as the format's own reader has it."""
_LENGTH: Final = 8


class NoSafetensors(SourceRefused):
    """What was read is no safetensors file, whoever reads it again."""


def tensor_bytes(file: BinaryIO, where: str, file_bytes: int, most: int = MOST_HEADER) -> dict[str, int]:
    """Bytes by type; `where` names the file to people, `most`: bytes of a header. No more is read than its length and,
    where that can be, the header. Raises NoSafetensors, and what reading raises."""
    length = int.from_bytes(_read(file, _LENGTH, where), "little")
    if not 2 <= length <= min(MOST_HEADER, file_bytes - _LENGTH):
        raise NoSafetensors(f"{where} is no safetensors file: its header would take {length} of {file_bytes} bytes")
    if length > most:
        raise NoSafetensors(f"{where} has a header of {length} bytes, and at most {most} are read of it")
    try:
        header: Any = json.loads(_read(file, length, where))
    except (ValueError, RecursionError) as error:
        raise NoSafetensors(f"{where} is no safetensors file: its header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise NoSafetensors(f"{where} is no safetensors file: its header holds no JSON object")
    found: dict[str, int] = {}
    for name, tensor in cast("dict[str, Any]", header).items():
        if name != "__metadata__":
            type, size = _tensor(tensor, f"{where}: tensor {shown(name[:80])}")
            found[type] = found.get(type, 0) + size
    whole = _LENGTH + length + sum(found.values())
    if whole != file_bytes:
        raise NoSafetensors(f"{where} is truncated, or no safetensors file: {file_bytes} of {whole} bytes")
    if len(found) > MOST_TENSOR_TYPES:
        raise NoSafetensors(f"{where} is no model's: its tensors have {len(found)} types")
    return found


def tensor_bytes_of(files: Iterable[Path]) -> dict[str, int] | str:
    """The same of several files of this machine, or what is wrong with one, by its name. Raises OSError."""

    def read(path: Path) -> dict[str, int]:
        with path.open("rb") as file:
            return tensor_bytes(file, path.name, os.fstat(file.fileno()).st_size)

    return added_up(read(path) for path in files)


def added_up(found: Iterable[dict[str, int]]) -> dict[str, int] | str:
    """Bytes by type of several files together, or why one is none; it is asked for them one after another."""
    added: dict[str, int] = {}
    try:
        for types in found:
            for type, size in types.items():
                added[type] = added.get(type, 0) + size
    except NoSafetensors as none:
        return str(none)
    return added


def _tensor(tensor: Any, where: str) -> tuple[str, int]:
    fields = cast("dict[str, Any]", tensor) if isinstance(tensor, dict) else {}
    type: Any = fields.get("dtype")
    places: Any = fields.get("data_offsets")
    offsets = cast("list[Any]", places) if isinstance(places, list) else []
    if not isinstance(type, str) or (not type.isalnum() and not type.replace("_", "").isalnum()) or len(type) > 32:
        raise NoSafetensors(f"{where} has the dtype {shown(str(type)[:40])!r}: want one such as BF16")
    if len(offsets) != 2 or any(not isinstance(each, int) for each in offsets) or not 0 <= offsets[0] <= offsets[1]:
        raise NoSafetensors(
            f"{where} has the data_offsets {shown(str(cast('object', places))[:40])}: want where it begins and ends"
        )
    return type, offsets[1] - offsets[0]


def _read(file: BinaryIO, size: int, where: str) -> bytes:
    body = file.read(size)
    if len(body) != size:
        raise NoSafetensors(f"{where} is truncated: its header has {len(body)} of {size} bytes")
    return body
