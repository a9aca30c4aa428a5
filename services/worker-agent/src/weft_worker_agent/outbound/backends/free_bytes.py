"""What is free on the disk that takes engines."""

import contextlib
from pathlib import Path

import psutil


def free_bytes(folder: Path) -> int | None:
    """Bytes free on the disk that holds a folder; of its nearest parent if it isn't there yet; None: not known."""
    for place in (folder, *folder.parents):
        with contextlib.suppress(OSError):
            return int(psutil.disk_usage(str(place)).free)
    return None
