"""A model in several files, `NAME-00001-of-00003.gguf` and so on: all of them are read as one."""

import re
from pathlib import Path
from typing import Final, NamedTuple

from weft_gguf.header import GgufHeader, NotGguf, Part, header_of, read_part

PART_NAME: Final = re.compile(r"(.*-)([0-9]{5})-of-([0-9]{5})\.gguf")
MAX_PARTS: Final = 1024


class SplitModel(NamedTuple):
    """What a model's files say together, and the files, the one that is loaded first."""

    header: GgufHeader
    files: tuple[Path, ...]


def read_model(path: Path) -> SplitModel:
    """Read the headers of all files that make a model, given the first; a whole model is one file.

    Raises NotGguf where the set isn't whole or isn't one, and what `read_header` raises. The messages are one
    sentence each.
    """
    first = read_part(path)
    files = _files(path, first)
    parts = [first]
    for number, file in enumerate(files[1:], 1):
        if not file.is_file():
            raise NotGguf(f"{path.name} is one of {len(files)} files, and {file.name} is missing")
        parts.append(_follower(file, number, len(files)))
    found = sum(len(part.tensors) for part in parts)
    told = first.facts.integer("split.tensors.count", found)
    if found != told:
        raise NotGguf(f"{path.name} and its parts hold {found} tensors, and the model has {told}: they are of two")
    return SplitModel(header_of(parts), files)


def _files(path: Path, first: Part) -> tuple[Path, ...]:
    count, number = first.facts.integer("split.count", 1), first.facts.integer("split.no", 0)
    if count <= 1:
        return (path,)
    if count > MAX_PARTS:
        raise NotGguf(f"{path.name} says that its model is in {count} files: {MAX_PARTS} are read at most")
    named = PART_NAME.fullmatch(path.name)
    if number != 0 or named is None or int(named[2]) != 1:
        raise NotGguf(
            f"{path.name} is one part of a model in {count} files: name the first, …-00001-of-{count:05}.gguf"
        )
    if int(named[3]) != count:
        raise NotGguf(f"{path.name} is named as one of {int(named[3])} files, and says that they are {count}")
    return tuple(path.with_name(f"{named[1]}{part:05}-of-{named[3]}.gguf") for part in range(1, count + 1))


def _follower(file: Path, number: int, count: int) -> Part:
    part = read_part(file)
    told, of = part.facts.integer("split.no", -1), part.facts.integer("split.count", -1)
    if (told, of) != (number, count):
        raise NotGguf(f"{file.name} is no part {number + 1} of {count}: it says that it is part {told + 1} of {of}")
    return part
