"""A model in several files, `NAME-00001-of-00003.gguf` and so on: all of them are read as one."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from weft_gguf.header import GgufHeader, NotGguf, Part, header_of, read_part

PART_NAME: Final = re.compile(r"(.*-)([0-9]{5})-of-([0-9]{5})\.gguf")
MAX_PARTS: Final = 1024


class SplitModel(NamedTuple):
    """What a model's files say together, and the files, the one that is loaded first."""

    header: GgufHeader
    files: tuple[Path, ...]


class SplitNames(NamedTuple):
    """The same of files that are known by name."""

    header: GgufHeader
    names: tuple[str, ...]


def read_model(path: Path) -> SplitModel:
    """Read the headers of all files that make a model, given the first; a whole model is one file.

    Raises NotGguf where the set isn't whole or isn't one, and what `read_header` raises. The messages are one
    sentence each.
    """

    def read(name: str) -> Part | None:
        file = path.with_name(name)
        return read_part(file) if name == path.name or file.is_file() else None

    header, names = read_named_model(path.name, read)
    return SplitModel(header, tuple(path.with_name(name) for name in names))


def read_named_model(name: str, read: Callable[[str], Part | None]) -> SplitNames:
    """The same, of files that `read` reads by their names; None: there is none of that name. Raises what it raises."""
    first = read(name)
    if first is None:
        raise NotGguf(f"{name} is missing")
    names = _names(name, first)
    parts = [first]
    for number, each in enumerate(names[1:], 1):
        part = read(each)
        if part is None:
            raise NotGguf(f"{name} is one of {len(names)} files, and {each} is missing")
        parts.append(_follower(part, each, number, len(names)))
    found = sum(len(part.tensors) for part in parts)
    told = first.facts.integer("split.tensors.count", found)
    if found != told:
        raise NotGguf(f"{name} and its parts hold {found} tensors, and the model has {told}: they are of two")
    return SplitNames(header_of(parts), names)


def _names(name: str, first: Part) -> tuple[str, ...]:
    count, number = first.facts.integer("split.count", 1), first.facts.integer("split.no", 0)
    if count <= 1:
        return (name,)
    if count > MAX_PARTS:
        raise NotGguf(f"{name} says that its model is in {count} files: {MAX_PARTS} are read at most")
    named = PART_NAME.fullmatch(name)
    if number != 0 or named is None or int(named[2]) != 1:
        raise NotGguf(f"{name} is one part of a model in {count} files: name the first, …-00001-of-{count:05}.gguf")
    if int(named[3]) != count:
        raise NotGguf(f"{name} is named as one of {int(named[3])} files, and says that they are {count}")
    return tuple(f"{named[1]}{part:05}-of-{named[3]}.gguf" for part in range(1, count + 1))


def _follower(part: Part, name: str, number: int, count: int) -> Part:
    told, of = part.facts.integer("split.no", -1), part.facts.integer("split.count", -1)
    if (told, of) != (number, count):
        raise NotGguf(f"{name} is no part {number + 1} of {count}: it says that it is part {told + 1} of {of}")
    return part
