"""Which GGUF model of several is meant: by a file's name or by its quantisation."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from weft_contracts.facts.source import MOST_FILES, SourceFile
from weft_contracts.shown import shown

from weft_sources.refused import SourceRefused
from weft_sources.words import candidates

PART: Final = re.compile(r"(.+)-([0-9]{5})-of-([0-9]{5})\.gguf", re.IGNORECASE)
"""A part of a model in several files, as llama.cpp's tools name it: `NAME-00001-of-00003.gguf`."""
_NO_MODEL: Final = ("mmproj", "imatrix")
_QUANTISATION: Final = re.compile(r"(I?Q|TQ|BF|F|FP|MXFP|NVFP|INT)[0-9][A-Z0-9_]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GgufModel:
    """One model, with all files that it consists of, the first first."""

    stem: str
    """Its name without `.gguf` and without the number of the part."""
    parts: tuple[SourceFile, ...]
    told: int
    """How many parts the names say that there are."""


def is_gguf(name: str) -> bool:
    """Whether a name is that of a GGUF file, whatever is in it."""
    return name.lower().endswith(".gguf")


def gguf_models(files: Iterable[SourceFile]) -> list[GgufModel]:
    """The models among files, by name; vision projectors and importance matrices are none."""
    single: list[GgufModel] = []
    split: dict[tuple[str, int], dict[int, SourceFile]] = {}
    for file in files:
        base = file.name.rpartition("/")[2].lower()
        if not is_gguf(base) or any(word in base for word in _NO_MODEL):
            continue
        part = PART.fullmatch(file.name)
        if part is None:
            single.append(GgufModel(file.name[: -len(".gguf")], (file,), 1))
        else:
            split.setdefault((part[1], int(part[3])), {})[int(part[2])] = file
    for (stem, told), parts in split.items():
        single.append(GgufModel(stem, tuple(parts[number] for number in sorted(parts)), told))
    return sorted(single, key=lambda model: (model.stem, model.told))


def choose_gguf(files: Sequence[SourceFile], wanted: str, where: str) -> tuple[SourceFile, ...]:
    """The files of the one model that `wanted` names, its first part first; empty: the only one there is.

    `wanted` is a file's name, with or without its folder, or a quantisation such as `Q4_K_M` in any case.
    Raises SourceRefused with the candidates where that is none or several.
    """
    models = gguf_models(files)
    if not models:
        raise SourceRefused(f"{where} holds no GGUF model")
    meant = [model for model in models if not wanted or _is_named(model, wanted)]
    if not meant:
        meant = [model for model in models if has_component(model.stem, wanted)]
    if not meant:
        raise SourceRefused(f"{where} holds no {shown(wanted)}: it has {candidates(_names(models))}")
    if len(meant) > 1:
        what = f"several models fit {shown(wanted)}" if wanted else f"{len(meant)} GGUF models are there"
        raise SourceRefused(f"{where}: {what}; say which: {candidates(_names(meant))}")
    return _whole(meant[0], where)


def has_component(stem: str, wanted: str) -> bool:
    """Whether a model's name has `wanted` as a component of its own: between `-`, `.` and `/`, in any case.

    Before a quantisation `_` parts components too, as in `model_Q4_K_M`; behind it never, since `Q4_K` is not
    `Q4_K_M`.
    """
    before = "[-./_]" if _QUANTISATION.fullmatch(wanted) else "[-./]"
    return re.search(f"(?:^|{before}){re.escape(wanted)}(?:$|[-./])", stem, re.IGNORECASE) is not None


def _is_named(model: GgufModel, wanted: str) -> bool:
    names = [*(part.name for part in model.parts), f"{model.stem}.gguf"]
    return any(wanted in (name, name.rpartition("/")[2]) for name in names)


def _names(models: Sequence[GgufModel]) -> list[str]:
    return [model.parts[0].name for model in models]


def _whole(model: GgufModel, where: str) -> tuple[SourceFile, ...]:
    if model.told == 1 and len(model.parts) == 1:
        return model.parts
    if not 0 < model.told <= MOST_FILES:
        raise SourceRefused(f"{where}: {shown(model.stem)} says that it is {model.told} files: at most {MOST_FILES}")
    there = {int(part[2]) for file in model.parts if (part := PART.fullmatch(file.name)) is not None}
    missing = sorted(set(range(1, model.told + 1)) - there)
    if missing:
        raise SourceRefused(f"{where}: {shown(model.stem)} is {model.told} files, and part {missing[0]} is missing")
    if len(there) > model.told:
        raise SourceRefused(f"{where}: {shown(model.stem)} has more parts than the {model.told} that it says")
    return model.parts
