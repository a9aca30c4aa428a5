"""How far a fetch of a model's files is, and how fast it goes. Pure; times are the agent's monotonic seconds."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from weft_contracts.facts.source import FetchedSource
from weft_contracts.ids import ReplicaId
from weft_contracts.signals import NO_REPLICA, FetchPhase, FetchSaid
from weft_contracts.source_keys import told_source

WINDOW_S: Final = 8.0
"""The rate is that of so long back, about."""
_STEP_S: Final = 1.0
_PLAIN: Final = re.compile(r"[^ -~]")
_LONGEST: Final = 300
_FASTEST: Final = 1e15


@dataclass(frozen=True, slots=True)
class FetchProgress:
    """One moment of a fetch."""

    total: int
    phase: FetchPhase = "waiting"
    file: str = ""
    """The one that is on its way."""
    before: int = 0
    """Bytes of the files that are here whole."""
    here: int = 0
    """Bytes of the one that is on its way, as far as they are here."""
    began_at: float | None = None
    marks: tuple[tuple[float, int], ...] = ()
    """How much there was when, of late."""
    giver: str = ""
    """The name of the node that it comes from; empty: the source itself."""

    @property
    def fetched(self) -> int:
        return min(self.before + self.here, self.total)

    @property
    def rate(self) -> float:
        """Bytes a second of late; 0: not known."""
        if len(self.marks) < 2:
            return 0.0
        (first, was), (last, now) = self.marks[0], self.marks[-1]
        return min(max(now - was, 0) / (last - first), _FASTEST) if last > first else 0.0


def begun(progress: FetchProgress, file: str, now: float) -> FetchProgress:
    """The next file is on its way."""
    began = now if progress.began_at is None else progress.began_at
    marks = progress.marks or ((now, 0),)
    return replace(progress, phase="fetching", file=file, here=0, began_at=began, marks=marks)


def moved(progress: FetchProgress, here: int, now: float, giver: str = "") -> FetchProgress:
    """So many bytes of the file are here. What a fresh try has to fetch again counts back."""
    progress = replace(progress, here=here, giver=giver)
    return replace(progress, marks=_marked(progress.marks, now, progress.fetched))


def finished(progress: FetchProgress, size: int) -> FetchProgress:
    """The file is here whole."""
    return replace(progress, before=progress.before + size, here=0, file="")


def placing(progress: FetchProgress) -> FetchProgress:
    """All files are here."""
    return replace(progress, phase="placing", file="", before=progress.total, here=0)


def fetch_said(
    files: str, replicas: Sequence[ReplicaId], source: FetchedSource, progress: FetchProgress, now: float
) -> list[FetchSaid]:
    """What is told of a fetch, for each replica that waits for it; once where none does."""
    seconds = now - progress.began_at if progress.began_at is not None else 0.0
    place = f" from {progress.giver}" if progress.giver else ""
    return [
        FetchSaid(
            replica=replica,
            files=files,
            source=_plain(told_source(source) + place),
            phase=progress.phase,
            file=_plain(progress.file),
            fetched=progress.fetched,
            total=progress.total,
            rate=round(progress.rate),
            fetching_s=max(round(seconds, 1), 0.0),
        )
        for replica in replicas or (NO_REPLICA,)
    ]


def _marked(marks: tuple[tuple[float, int], ...], now: float, fetched: int) -> tuple[tuple[float, int], ...]:
    """With one more mark a second, and without those that are too old; the last one is always the newest."""
    if len(marks) > 1 and now - marks[-2][0] < _STEP_S:
        marks = marks[:-1]
    kept = tuple(each for each in marks if now - each[0] <= WINDOW_S)
    return (*(kept or marks[-1:]), (now, fetched))


def _plain(text: str) -> str:
    return _PLAIN.sub("?", text)[:_LONGEST]
