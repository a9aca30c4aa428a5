"""Sizes and spans of time as people read and write them."""

import re

from weft_client.failure import Exit, Failure

_SPAN = re.compile(r"([0-9]{1,9})([smhd]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


def size(count: int | None) -> str:
    """Bytes for people, in binary units; unknown is `?`, which is not zero."""
    if count is None:
        return "?"
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(amount) < 1024 or unit == "TiB":
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError("TiB is the last")


def span(text: str, option: str = "--expires") -> int:
    """Seconds. Raises Failure with status 2."""
    found = _SPAN.fullmatch(text)
    if found is None or not int(found[1]):
        raise Failure(f"{option} {text}: want a span such as 90s, 30m, 12h or 7d", Exit.USAGE)
    return int(found[1]) * _SECONDS[found[2]]
