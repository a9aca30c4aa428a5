"""Names of strangers in sentences, where there may be many."""

from collections.abc import Sequence
from typing import Final

from weft_contracts.shown import shown

MOST_SHOWN: Final = 12


def candidates(names: Sequence[str]) -> str:
    """At most 12 of the names, and how many there are besides."""
    first = ", ".join(shown(name) for name in names[:MOST_SHOWN])
    return f"{first} and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else first
