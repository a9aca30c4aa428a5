"""A VRAM budget as people write it: `80%`, `0.8`, `12GB` (10^9), `12GiB` (2^30), or nothing for no limit."""

import re
from decimal import Decimal

from weft_contracts.facts.values import VramBudget

_FORM = re.compile(r"(?P<number>[0-9]{1,18}(\.[0-9]{1,30})?) ?(?P<unit>%|B|[KMGT]i?B)?", re.IGNORECASE)
_POWER = {"k": 1, "m": 2, "g": 3, "t": 4}


def parse_budget(text: str) -> VramBudget:
    """The budget that a text names. Raises ValueError with one sentence."""
    if not text.strip():
        return VramBudget()
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise _wrong(text)
    number, unit = float(found["number"]), (found["unit"] or "").lower()
    if unit in ("", "%"):
        share = number / 100 if unit else number
        if not 0 < share <= 1:
            raise _wrong(text)
        return VramBudget(share=share)
    size = int(number * ((1024 if "i" in unit else 1000) ** _POWER.get(unit[0], 0)))
    if size < 1:
        raise _wrong(text)
    return VramBudget(bytes=size)


def budget_text(budget: VramBudget) -> str:
    """A text that names this budget; empty for no limit."""
    if budget.share is not None:
        share = Decimal(repr(budget.share))
        percent = format((share * 100).normalize(), "f")
        return f"{percent}%" if float(percent) / 100 == budget.share else format(share, "f")
    if budget.bytes is None:
        return ""
    for unit, size in (("GiB", 1 << 30), ("GB", 10**9), ("MiB", 1 << 20), ("MB", 10**6)):
        if budget.bytes % size == 0:
            return f"{budget.bytes // size}{unit}"
    return f"{budget.bytes}B"


def _wrong(text: str) -> ValueError:
    return ValueError(
        f"{text[:40]!r} is no VRAM budget: want a share of each device (80% or 0.8), bytes of each (12GB, 12GiB),"
        " or nothing for no limit"
    )
