"""Sizes as people write them: bytes, or a number with a unit."""

import re
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Final

WANTED: Final = 'want a size: bytes, or a number with a unit such as "15.2GiB" (2^30) or "12GB" (10^9)'
MOST: Final = 1 << 53
_WRITTEN: Final = re.compile(r"(\d{1,20}(?:\.\d{1,12})?) ?([KMGT]i?B|kB|B)")
_UNITS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "B": 1,
        "kB": 10**3,
        "KB": 10**3,
        "MB": 10**6,
        "GB": 10**9,
        "TB": 10**12,
        "KiB": 1 << 10,
        "MiB": 1 << 20,
        "GiB": 1 << 30,
        "TiB": 1 << 40,
    }
)


def size_of(value: object) -> int | None:
    """Bytes, a part of one left out; None: it is no size, or more than any fact can say."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and (found := _WRITTEN.fullmatch(value.strip())) is not None:
        value = int(Decimal(found[1]) * _UNITS[found[2]])
    return value if isinstance(value, int) and 0 <= value <= MOST else None
