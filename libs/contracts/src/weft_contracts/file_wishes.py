"""Which files of models a node is to have whether replicas need them or not, and which are to go: folded alike by all
who ask."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from weft_contracts.facts.machine import FilesFailed
from weft_contracts.facts.node import FilesRetired, FilesWanted

MOST_RETIRED: Final = 1000
"""That are remembered of a node, the newest."""
V = TypeVar("V")


@dataclass(frozen=True)
class FileWishes:
    """One node's, all by `digest.files_digest`."""

    wanted: Mapping[str, FilesWanted] = field(default_factory=dict[str, FilesWanted])
    faults: Mapping[str, FilesFailed] = field(default_factory=dict[str, FilesFailed])
    """Why what is wanted could not be fetched."""
    retired: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """What lies there and need not be kept any more; whether it is to go once nothing uses it."""


NO_FILE_WISHES = FileWishes()


def after_files_wanted(wishes: FileWishes, fact: FilesWanted) -> FileWishes:
    """Files are wanted: they are not to go, and what was said of an earlier try is over."""
    return FileWishes(
        {**wishes.wanted, fact.files: fact},
        _without(wishes.faults, fact.files),
        _without(wishes.retired, fact.files),
    )


def after_files_retired(wishes: FileWishes, fact: FilesRetired, there: Container[str]) -> FileWishes:
    """Files are wanted no more. Of what isn't there nothing has to go."""
    retired = _without(wishes.retired, fact.files)
    if fact.files in there:
        retired = {**retired, fact.files: fact.remove}
        if len(retired) > MOST_RETIRED:
            retired = _without(retired, next(iter(retired)))
    return FileWishes(_without(wishes.wanted, fact.files), _without(wishes.faults, fact.files), retired)


def after_files_moved(wishes: FileWishes, files: str, *, here: bool) -> FileWishes:
    """Files came or went: what is here has not failed, and what is gone needs no removal."""
    known = wishes.faults if here else wishes.retired
    if files not in known:
        return wishes
    left = _without(known, files)
    return replace(wishes, faults=left) if here else replace(wishes, retired=left)


def after_files_failed(wishes: FileWishes, fact: FilesFailed) -> FileWishes:
    """Files that are wanted could not be fetched; of what is wanted no more nothing is remembered."""
    if fact.files not in wishes.wanted:
        return wishes
    return replace(wishes, faults={**wishes.faults, fact.files: fact})


def _without(mapping: Mapping[str, V], key: str) -> Mapping[str, V]:
    return {k: v for k, v in mapping.items() if k != key} if key in mapping else mapping
