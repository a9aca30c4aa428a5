"""A fold's version: the code that makes its memory. Whatever changes there, an older snapshot is not for it."""

import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path

import pydantic
from blake3 import blake3

_DECODING = ("weft_contracts", "weft_eventlog.delivered", "weft_eventlog.projection", "weft_eventlog.snapshots")
"""What every fold stands on: how bytes become facts, and how a memory becomes bytes."""


def fold_version(code: Iterable[str]) -> str | None:
    """32 hex digits over the sources of these modules and packages, and of those that all folds stand on.

    None where sources are not to be had: then there are no snapshots. About 5 ms.
    """
    digest = blake3(f"pydantic {pydantic.VERSION}\n".encode())
    for name in sorted({*code, *_DECODING}):
        found = False
        for path, inside in _sources(name):
            found = True
            body = path.read_bytes()
            digest.update(f"{name}/{inside} {len(body)}\n".encode())
            digest.update(body)
        if not found:
            return None
    return digest.hexdigest()[:32]


def _sources(name: str) -> Iterator[tuple[Path, str]]:
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"no module {name}: a fold's code names what is imported")
    for folder in spec.submodule_search_locations or ():
        for path in sorted(Path(folder).rglob("*.py")):
            yield path, path.relative_to(folder).as_posix()
        return
    if spec.origin is not None and spec.origin.endswith(".py"):
        yield Path(spec.origin), ""
