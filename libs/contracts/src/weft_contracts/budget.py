"""How much of each accelerator's memory replicas may claim: `80%`, `0.8`, `12GB` or `12GiB`."""

import re
from dataclasses import dataclass

_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%|([01](?:\.\d+)?|\.\d+)")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]i?B)", re.IGNORECASE)
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}


class BadSize(ValueError):
    """A text that names no size or budget; the message is a sentence for people."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A share of each device, or bytes of each."""

    share: float | None = None
    """Above 0, up to 1."""
    bytes: int | None = None

    def of(self, memory: int) -> int:
        """The bytes that it allows of a device with so many."""
        allowed = memory if self.bytes is None else self.bytes
        return min(memory, allowed if self.share is None else round(memory * self.share))


def parse_budget(text: str) -> Budget | None:
    """The budget that a text names; None for an empty one. Raises BadSize."""
    text = text.strip()
    if not text:
        return None
    if found := _SHARE.fullmatch(text):
        share = float(found[1]) / 100 if found[1] else float(found[2])
        if 0 < share <= 1:
            return Budget(share=share)
    elif _SIZE.fullmatch(text):
        return Budget(bytes=parse_size(text))
    raise BadSize(f"{text!r} is no VRAM budget: want a share like 80% or 0.8, or a size like 12GB or 12GiB")


def parse_size(text: str) -> int:
    """Bytes: `12GB` is 12 × 10⁹, `12GiB` 12 × 2³⁰. Raises BadSize."""
    found = _SIZE.fullmatch(text.strip())
    unit = found[2].upper() if found else ""
    size = int(float(found[1]) * (1024 if "I" in unit else 1000) ** _POWERS[unit[0]]) if found else 0
    if size <= 0:
        raise BadSize(f"{text!r} is no size: want one like 12GB or 12GiB")
    return size
