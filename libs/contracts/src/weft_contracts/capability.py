"""What a spec asks of a device beyond its memory: a compute capability of NVIDIA's, or an architecture of AMD's."""

import re
from collections.abc import Collection
from typing import Annotated, Final

from pydantic import AfterValidator

MOST_CAPABILITIES: Final = 8
"""That one spec names."""
_NVIDIA: Final = re.compile(r"([0-9]{1,3})\.([0-9]{1,2})")
_AMD: Final = re.compile(r"gfx[0-9a-f]{3,8}")


def fault_of_capability(text: str) -> str | None:
    """What is wrong with one as somebody wrote it."""
    if _NVIDIA.fullmatch(text) is None and _AMD.fullmatch(text) is None:
        return "want a compute capability such as 8.9, or an architecture such as gfx942"
    return None


def _capability(text: str) -> str:
    if (fault := fault_of_capability(text)) is not None:
        raise ValueError(fault)
    return text


Capability = Annotated[str, AfterValidator(_capability)]
"""`8.9`: NVIDIA's devices of that compute capability or a higher one; `gfx942`: AMD's of that architecture."""


def capable(vendor: str, has: str | None, wanted: Collection[str]) -> bool:
    """Whether a device meets one of what is wanted; one that doesn't tell what it has meets none."""
    if has is None:
        return False
    if vendor == "nvidia":
        own = _numbers(has)
        return own is not None and any(least <= own for each in wanted if (least := _numbers(each)) is not None)
    return vendor == "amd" and has.partition(":")[0] in wanted  # as ROCm says it, features follow: gfx90a:xnack-


def told_capabilities(wanted: Collection[str]) -> str:
    """In words."""
    return " or ".join(f"compute capability {each} or higher" if _numbers(each) else each for each in wanted)


def _numbers(text: str) -> tuple[int, int] | None:
    found = _NVIDIA.fullmatch(text)
    return None if found is None else (int(found[1]), int(found[2]))
