"""A fold's version: the code that makes its memory. Whatever changes there, an older snapshot is not for it.

What a memory is made of is found by imports: from the module of its class to all that it names of the facts, the fleet
and its own package. What only decides (placement's scorers, permissions, routes) is not among it, so a release that
changes nothing else takes the snapshots of the one before up.
"""

import functools
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pydantic
from blake3 import blake3

_FOLDED = ("weft_contracts", "weft_fleet", "weft_requests")
"""The packages whose code is part of any memory that names it. Of placement's a memory keeps nothing but answers that
it finds anew, and `Shape` refuses all else."""
_DECODING = (
    "weft_contracts.codec",
    "weft_eventlog.delivered",
    "weft_eventlog.projection",
    "weft_eventlog.quick_headers",
    "weft_eventlog.snapshots.mark",
    "weft_eventlog.snapshots.packing",
    "weft_eventlog.snapshots.shape",
)
"""What every fold stands on: how bytes become facts, and how a memory becomes bytes."""
_IMPORT = re.compile(r"^[ \t]*(?:from (weft_[\w.]+) import (\([^)]*\)|[^(\n]*)|import (weft_[\w.]+))", re.MULTILINE)
_NAME = re.compile(r"\b\w+\b")
_ASIDE = re.compile(r"#[^\n]*| as \w+")


def fold_version(memory: type) -> str | None:
    """32 hex digits over the sources that make such a memory, and those that all folds stand on.

    None where sources are not to be had: then there are no snapshots. About 5 ms.
    """
    digest = blake3(f"pydantic {pydantic.VERSION}\n".encode())
    for name in fold_code(memory):
        path = _source(name)
        if path is None:
            return None
        body = path.read_bytes()
        digest.update(f"{name} {len(body)}\n".encode())
        digest.update(body)
    return digest.hexdigest()[:32]


def fold_code(memory: type) -> list[str]:
    """The modules whose sources are such a memory's version, in order."""
    own = memory.__module__.partition(".")[0]
    return sorted({*_reached((memory.__module__, *_DECODING), (own, *_FOLDED))})


def _reached(roots: Iterable[str], packages: tuple[str, ...]) -> Iterator[str]:
    seen: set[str] = set()
    ahead = list(roots)
    while ahead:
        name = ahead.pop()
        if name in seen:
            continue
        seen.add(name)
        yield name
        path = _source(name)
        if path is not None:
            found = imports(path.read_text())
            ahead += [each for each in found if each.partition(".")[0] in packages]


def imports(source: str) -> list[str]:
    """The modules of Weft's own that a source imports: by its text, which takes a fiftieth of parsing it."""
    found: list[str] = []
    for module, names, plain in _IMPORT.findall(source):
        if plain:
            found.append(plain)
            continue
        inner = [f"{module}.{name}" for name in _NAME.findall(_ASIDE.sub("", names))]
        modules = [each for each in inner if _source(each) is not None]
        found += modules if len(modules) == len(inner) else [module, *modules]
    return found


def _source(name: str) -> Path | None:
    top, *rest = name.split(".")
    folder = _folder(top) if top.startswith("weft_") else None
    if folder is None:
        file = getattr(sys.modules.get(name), "__file__", None)
        return Path(file) if file is not None and file.endswith(".py") else None
    place = folder.joinpath(*rest)
    return next((each for each in (place / "__init__.py", place.with_suffix(".py")) if each.is_file()), None)


@functools.cache
def _folder(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    found = spec.submodule_search_locations if spec is not None else None
    return Path(found[0]) if found else None
