"""Brings a model's files into the page cache before native code loads them.

llama.cpp's binding holds the interpreter while it loads. Reading the file first, which does not, leaves little of
that: the host goes on answering its agent through most of a cold load.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

WORTH_BYTES: Final = 64 * 1024 * 1024
"""A smaller file loads in no time anyhow."""

PIECE: Final = 4 * 1024 * 1024
MEMORY: Final = Path("/proc/meminfo")


def warm_files(paths: Sequence[Path]) -> int:
    """Read the files once and answer the bytes read; 0 where it is not worth it or would not fit the memory.

    Blocks, for as long as the disk takes. Raises OSError.
    """
    size = sum(path.stat().st_size for path in paths)
    if size < WORTH_BYTES or size > available_bytes() // 2:
        return 0
    read = 0
    piece = bytearray(PIECE)
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(piece):
                read += count
    return read


def available_bytes() -> int:
    """Memory that can be had without swapping; 0 where the system doesn't say."""
    try:
        for line in MEMORY.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return 0
    return 0
