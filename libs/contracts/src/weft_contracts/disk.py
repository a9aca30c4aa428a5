"""What a mesh needs of its disk, and how much of that the log's streams may take. Pure; sizes are bytes."""

from collections.abc import Mapping
from pathlib import Path

KEPT_FREE = 64 << 20
"""Below this the log takes nothing more: servers need some of it to stop, to start and to say so."""
NEEDED_FIRST = 192 << 20
"""Free before a first start: what a new mesh writes (about 60 MiB, most of it Postgres'), and what is kept free."""
SMALLEST_STORE = 64 << 20
"""Of a server of the log, where its size is said."""
_STORE_KEPT = 8
"""One part in so many of a store is no message: what files and file systems hold beside them."""
_STORE_SHARES = 16
"""One part in so many is what each stream beside the log may take, so that more than half is the log's."""
_ROOM_STEP = 1 << 20
_ROOM_MOST = 1 << 44


def needed(*, first: bool) -> int:
    """What must be free for a mesh to start; `first`: on a state that isn't there yet."""
    return NEEDED_FIRST if first else KEPT_FREE


def shortage(folder: Path, free: int, wanted: int) -> str | None:
    """One sentence where less is free on a folder's disk than is wanted, with both figures; else None."""
    if free >= wanted:
        return None
    return (
        f"the disk of {folder} has too little room: {_mib(wanted)} free are needed and {_mib(free)} are;"
        " free some, or keep the state elsewhere (--state DIR)"
    )


def log_full(folder: Path, free: int) -> str | None:
    """One sentence where the log takes nothing more for want of disk; else None."""
    if free >= KEPT_FREE:
        return None
    return (
        f"the disk of {folder} is full: the log takes nothing more with less than {_mib(KEPT_FREE)} free, and"
        f" {_mib(free)} are; what runs is served, and what is free again is taken up by itself"
    )


def room(free: int) -> int:
    """What streams may still grow by: what is free above what is kept so.

    Rounded down to a power of two, so that limits are set anew when it has halved or doubled, not at each commit.
    """
    left = min(free - KEPT_FREE, _ROOM_MOST)
    return 1 << (left.bit_length() - 1) if left >= _ROOM_STEP else 0


def limit(declared: int, stored: int, room: int) -> int:
    """A stream's limit: what is declared (0: none), or less where the disk has less. Never below what it holds."""
    grown = max(1, stored + room)
    return min(max(declared, stored), grown) if declared else grown


def store_limits(size: int, others: Mapping[str, int], log: str) -> dict[str, int]:
    """The limits of all streams on a store of so many bytes, which together fit it. `others`: what is declared of those
    beside the log (0: none)."""
    share = max(1, size // _STORE_SHARES)
    limits = {name: min(declared or share, share) for name, declared in others.items()}
    return {**limits, log: max(1, size - size // _STORE_KEPT - sum(limits.values()))}


def _mib(count: int) -> str:
    return f"{max(0, count) >> 20} MiB"
