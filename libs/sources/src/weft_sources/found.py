"""What a source holds, before any of it is chosen."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError
from weft_contracts.facts.source import RemoteSource, SourceFile

MOST_FOUND: Final = 20_000
"""Names that are looked at in one repository or folder of a bucket."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A name as a source says it: nothing of it is checked yet."""

    name: str
    size: int | None
    """None: the source doesn't say."""
    checksum: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """All that a source holds; `source` names one version of it where it has versions."""

    source: RemoteSource
    files: tuple[FoundFile, ...]
    licence: str = ""
    gated: bool = False


def usable(files: Iterable[FoundFile]) -> list[SourceFile]:
    """The files with a size and a name that can be a place under a model's folder; the others are passed over."""
    taken: list[SourceFile] = []
    for file in files:
        try:
            taken.append(SourceFile.model_validate({"name": file.name, "size": file.size, "checksum": file.checksum}))
        except ValidationError:
            continue
    return taken
