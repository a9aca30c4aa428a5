"""Which bytes of a file a request brings, or that it asks how many are there. Pure."""

import re
from dataclasses import dataclass
from typing import Final

_RANGE: Final = re.compile(r"bytes (?:(\d{1,18})-(\d{1,18})|\*)/(\d{1,18})")

_THERE: Final = re.compile(r"bytes=0-(\d{1,18})")


class BadRange(ValueError):
    """A header that is none; the message is a sentence for people."""


@dataclass(frozen=True, slots=True)
class ContentRange:
    """Of a file of `total` bytes those from `start` up to, and without, `end`; a question has none."""

    total: int
    start: int = 0
    end: int = 0

    @property
    def asks(self) -> bool:
        return self.end == 0


def content_range(text: str) -> ContentRange:
    """Of `bytes 0-99/200`, or `bytes */200`. Raises BadRange."""
    found = _RANGE.fullmatch(text)
    if found is None:
        raise BadRange(f"content-range is {text[:80]!r}: want bytes FIRST-LAST/TOTAL, or bytes */TOTAL to ask")
    total = int(found[3])
    if found[1] is None:
        return ContentRange(total)
    first, last = int(found[1]), int(found[2])
    if first > last or last >= total:
        raise BadRange(f"content-range is {text[:80]!r}: the first byte comes before the last, and it below the total")
    return ContentRange(total, first, last + 1)


def said(range: ContentRange) -> str:
    """The header that `content_range` reads."""
    return f"bytes */{range.total}" if range.asks else f"bytes {range.start}-{range.end - 1}/{range.total}"


def there_of(text: str) -> int:
    """How many bytes `range_there` tells; an empty text tells none. Raises BadRange."""
    found = _THERE.fullmatch(text)
    if found is None and text:
        raise BadRange(f"range is {text[:80]!r}: want bytes=0-LAST")
    return int(found[1]) + 1 if found is not None else 0


def range_there(there: int) -> dict[str, str]:
    """The header that tells how many bytes are there, as resumable uploads have it; without one there are none."""
    return {"range": f"bytes=0-{there - 1}"} if there else {}
