"""Which files make a safetensors model: what its index names, or what lies at the root."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, cast

from weft_contracts.facts.source import SourceFile
from weft_contracts.shown import shown

from weft_sources.metadata_names import CONFIG, INDEX
from weft_sources.refused import SourceRefused
from weft_sources.words import candidates

MOST_INDEX: Final = 32 << 20
"""Of `model.safetensors.index.json`, in bytes; that of the largest models is 10 MB."""
_SUFFIX: Final = ".safetensors"
_PART: Final = re.compile(r"(.+)-([0-9]{5})-of-([0-9]{5})\.safetensors")
_PICKLES: Final = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_NO_MODEL: Final = re.compile(r"(adapter|consolidated)[^/]*\.safetensors")


def index_file(files: Sequence[SourceFile]) -> SourceFile | None:
    """The index that says which files hold which tensors, where there is one."""
    return next((file for file in files if file.name == INDEX), None)


def index_names(body: bytes, where: str) -> frozenset[str]:
    """The files that an index names. Raises SourceRefused where it is none."""
    try:
        read: Any = json.loads(body)
        named = cast("dict[str, Any]", read["weight_map"]).values()
        names = frozenset(cast("list[str]", list(named)))
        if not names or not all(isinstance(name, str) for name in cast("frozenset[Any]", names)):
            raise TypeError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise SourceRefused(f"{where}: {INDEX} is no index of safetensors files") from None
    return names


def choose_safetensors(files: Sequence[SourceFile], index: frozenset[str] | None, where: str) -> tuple[SourceFile, ...]:
    """The weights of a safetensors model, by name; `index`: what `index_names` read, where an index is there.

    Raises SourceRefused where there are none, where one is missing, where they are pickles, without config.json.
    """
    at = {file.name: file for file in files}
    if index is not None:
        weights = [_indexed(at, name, where) for name in sorted(index)]
    else:
        weights = _at_root(list(at.values()), where)
    if CONFIG not in at:
        raise SourceRefused(f"{where} holds safetensors files and no {CONFIG}, which engines read them by")
    return tuple(weights)


def has_safetensors(files: Sequence[SourceFile]) -> bool:
    """Whether a model's weights are there as safetensors."""
    return any(_is_weight(file.name) for file in files) or index_file(files) is not None


def pickles(names: Sequence[str]) -> list[str]:
    """The weights that are Python pickles, which run what their author wrote as soon as they are loaded."""
    return sorted(name for name in names if name.lower().endswith(_PICKLES))


def refuse_pickles(names: Sequence[str], where: str) -> None:
    """Raises SourceRefused if there are pickles among the names."""
    if found := pickles(names):
        raise SourceRefused(
            f"{where} holds its weights as pickles ({candidates(found)}), which run code when they are loaded: "
            f"name a repository with safetensors or GGUF files"
        )


def _is_weight(name: str) -> bool:
    return name.endswith(_SUFFIX) and "/" not in name and _NO_MODEL.fullmatch(name) is None


def _indexed(at: dict[str, SourceFile], name: str, where: str) -> SourceFile:
    refuse_pickles([name], where)
    if not name.endswith(_SUFFIX):
        raise SourceRefused(f"{where}: {INDEX} names {shown(name)}, which is no safetensors file")
    file = at.get(name)
    if file is None:
        raise SourceRefused(f"{where}: {INDEX} names {shown(name)}, which is not there")
    return file


def _at_root(files: Sequence[SourceFile], where: str) -> list[SourceFile]:
    found = sorted((file for file in files if _is_weight(file.name)), key=lambda file: file.name)
    if not found:
        raise SourceRefused(f"{where} holds no safetensors file")
    whole = [file for file in found if file.name == "model.safetensors"]
    if whole:
        return whole
    for file in found:
        if (part := _PART.fullmatch(file.name)) is None:
            continue
        told = int(part[3])
        there = {int(other[2]) for each in found if (other := _PART.fullmatch(each.name)) and other[1] == part[1]}
        missing = set(range(1, min(told, 10_000) + 1)) - there
        if missing:
            raise SourceRefused(f"{where}: {part[1]} is {told} safetensors files, and part {min(missing)} is missing")
    return found
