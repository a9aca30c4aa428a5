"""How much of a model's files a process has taken, seen from outside: what it maps of them, or how far it has read."""

from pathlib import Path

import psutil


def weights_taken(pid: int, model: Path) -> int | None:
    """Bytes of the files of a model that a process and its children have mapped or read; None where none can be told.

    `model`: the file, whose parts may lie beside it, or the folder. Takes milliseconds, and a second for hundreds of
    gigabytes that are mapped: the system walks through their pages.
    """
    if not psutil.LINUX:
        return None
    try:
        host = psutil.Process(pid)
        processes = (host, *host.children(recursive=True))
    except psutil.Error:
        return None
    taken: dict[str, int] = {}
    for process in processes:
        for path, bytes in _of(process):
            if _belongs(Path(path), model):
                taken[path] = max(bytes, taken.get(path, 0))
    return sum(taken.values())


def _of(process: psutil.Process) -> list[tuple[str, int]]:
    """The files of a process, with how much of each it has mapped or read."""
    try:
        mapped = [(each.path, int(each.rss)) for each in process.memory_maps(grouped=True)]
        return mapped + [(each.path, int(each.position)) for each in process.open_files()]
    except (psutil.Error, OSError):  # it ended, or changes what it maps meanwhile
        return []


def _belongs(path: Path, model: Path) -> bool:
    if path == model or model in path.parents:
        return True
    return bool(model.suffix) and path.suffix == model.suffix and path.parent == model.parent
