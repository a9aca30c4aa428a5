"""Which models' files are fetched ahead of need and tried again, and which go. Times are the agent's monotonic
seconds."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from weft_contracts.facts.machine import FilesFailed
from weft_contracts.facts.node import FilesWanted
from weft_contracts.facts.values import ModelSpec
from weft_contracts.file_wishes import FileWishes

from weft_worker_agent.domain.restarts import slow_wait_s

MOST_REASON: Final = 2000


@dataclass(frozen=True, slots=True)
class FetchTries:
    """The tries of one wish."""

    wanted: FilesWanted
    failed: int = 0
    next_at: float = 0.0
    reason: str = ""
    """Of the last that failed and is to be told."""
    room: int = 0
    """Bytes that must be free before the next; 0: it waits for no room."""
    told: bool = False
    """Whether the log knows of a failure."""


def fetches_of(wishes: FileWishes, before: Mapping[str, FetchTries]) -> dict[str, FetchTries]:
    """What stands of earlier tries: nothing where the same was asked for anew."""
    kept: dict[str, FetchTries] = {}
    for files, wanted in wishes.wanted.items():
        tries = before.get(files)
        if tries is None or (tries.told and files not in wishes.faults):
            tries = FetchTries(wanted)
        kept[files] = replace(tries, wanted=wanted, told=files in wishes.faults)
    return kept


def after_failed_fetch(tries: FetchTries, reason: str, room: int, now: float) -> FetchTries:
    """One more try that failed. Sources may say another thing each time: what is told is the reason after 1, 2, 4, 8…
    tries, so that the log grows ever less."""
    failed = tries.failed + 1
    said = reason[:MOST_REASON] if failed & (failed - 1) == 0 else tries.reason
    return replace(tries, failed=failed, next_at=now + slow_wait_s(failed), reason=said, room=room)


def next_fetch(tries: Mapping[str, FetchTries], there: Collection[str], now: float, free: int) -> FetchTries | None:
    """What is to be fetched now: what was tried least first. What the disk had no room for waits until it has."""
    due = (each for files, each in tries.items() if files not in there and now >= each.next_at and free >= each.room)
    return min(due, key=lambda each: each.failed, default=None)


def untold_failure(wishes: FileWishes, tries: Mapping[str, FetchTries]) -> FilesFailed | None:
    """What the log doesn't know yet of why something can't be fetched; the same reason is said once."""
    for files, each in tries.items():
        if each.reason and files in wishes.wanted:
            fact = FilesFailed(files=files, reason=each.reason)
            if wishes.faults.get(files) != fact:
                return fact
    return None


def leaving(wishes: FileWishes, there: Collection[str], used: Collection[str]) -> list[str]:
    """What is to be removed now."""
    return [files for files, goes in wishes.retired.items() if goes and files in there and files not in used]


def forsaken(
    begun: Mapping[str, FilesWanted], wishes: FileWishes, there: Collection[str], used: Collection[str]
) -> dict[str, bool]:
    """What began to come ahead of need and needs no watching any more, and whether what came of it is to go: it is
    wanted no more, is not here whole, and no replica needs it."""
    return {
        files: files not in there and files not in used
        for files in begun
        if files in there or files not in wishes.wanted
    }


def files_needed_still(specs: Iterable[ModelSpec], wishes: FileWishes) -> frozenset[tuple[str, int]]:
    """The checksum and size of each file that a replica here or a wish needs."""
    listed = (*(spec.files for spec in specs), *(wanted.listed for wanted in wishes.wanted.values()))
    return frozenset((file.checksum, file.size) for files in listed for file in files)
