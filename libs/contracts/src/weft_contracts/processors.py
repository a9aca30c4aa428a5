"""A machine's processors by number, in the form that Linux lists them in: `0-3,8`."""

import re
from collections.abc import Iterable

MOST = 8192
"""Processors of one machine; the kernel knows no more."""
LIST = r"\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*"
"""What a list looks like."""
_LIST = re.compile(LIST)


def listed(text: str) -> frozenset[int]:
    """The numbers that a list names; none for an empty one. Raises ValueError."""
    if not (text := text.strip()):
        return frozenset()
    if not _LIST.fullmatch(text):
        raise ValueError(f"{text[:60]!r} is no list of processors: want one like 0-3,8")
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if int(last or first) >= MOST or int(last or first) < int(first):
            raise ValueError(f"{part!r} names no processors: want numbers from 0 to {MOST - 1}, the lower one first")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def as_list(processors: Iterable[int]) -> str:
    """Numbers as such a list; empty for none."""
    parts: list[tuple[int, int]] = []
    for number in sorted(set(processors)):
        if parts and parts[-1][1] == number - 1:
            parts[-1] = (parts[-1][0], number)
        else:
            parts.append((number, number))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
