"""How far an installation is, read from what the installer says without a terminal."""

import re
from dataclasses import dataclass, replace

from weft_contracts.signals import InstallPhase

_DOWNLOADING = re.compile(r"Downloading (\S+) \(([0-9.]+)([KMG]?i?B)\)")
_DOWNLOADED = re.compile(r"\s*Downloaded (\S+)")
_BUILDING = re.compile(r"\s*Building (\S+?)(?:==\S+)?$")
_BUILT = re.compile(r"\s*Built \S+")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass(frozen=True, slots=True)
class InstallProgress:
    """One moment of an installation."""

    phase: InstallPhase = "queued"
    package: str = ""
    """The large one that was begun last and is on its way still."""
    fetched: int = 0
    total: int = 0
    """Bytes of the large packages that are here, and of those that are known of; 0: none is known."""
    under_way: tuple[tuple[str, int], ...] = ()


def heard(progress: InstallProgress, line: str) -> InstallProgress:
    """The progress after one more line. A line that says nothing of it changes nothing."""
    if begun := _DOWNLOADING.match(line.strip()):
        name, size = begun[1], int(float(begun[2]) * _UNITS.get(begun[3], 1))
        way = (*progress.under_way, (name, size))
        return replace(progress, phase="fetching", package=name, total=progress.total + size, under_way=way)
    if done := _DOWNLOADED.match(line):
        size = sum(size for name, size in progress.under_way if name == done[1])
        way = tuple(each for each in progress.under_way if each[0] != done[1])
        package = way[-1][0] if way else ""
        return replace(progress, package=package, fetched=progress.fetched + size, under_way=way)
    if building := _BUILDING.match(line):
        return replace(progress, phase="building", package=building[1])
    if _BUILT.match(line):
        return replace(progress, phase="fetching", package="")
    if line.startswith("Resolved "):
        return replace(progress, phase="fetching")
    if line.startswith("Prepared "):
        return replace(progress, phase="placing", package="", under_way=())
    return progress
