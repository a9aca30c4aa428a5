"""Which bytes of a file an HTTP request asks for (RFC 9110, 14): one range, or all of it."""

import re
from typing import Final

_RANGE: Final = re.compile(r"bytes=([0-9]{0,19})-([0-9]{0,19})", re.ASCII)


class NotThere(Exception):
    """The file has no such bytes: 416."""


def asked_range(said: str | None, size: int) -> tuple[int, int] | None:
    """From, and up to; None for the whole file: nothing is said, or what is no single range of bytes, which a server
    may pass over. Raises NotThere."""
    found = _RANGE.fullmatch(said.strip()) if said is not None else None
    if found is None or found[1] == found[2] == "":
        return None
    if found[1] == "":
        last = int(found[2])
        if last == 0 or size == 0:
            raise NotThere
        return max(0, size - last), size
    first = int(found[1])
    if found[2] and int(found[2]) < first:
        return None
    if first >= size:
        raise NotThere
    return first, min(int(found[2]) + 1, size) if found[2] else size
