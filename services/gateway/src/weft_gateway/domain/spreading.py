"""How files spread from node to node: one copy leaves their source, and each link carries one.

Those that wait stand in the order in which they began to need the files. Each first asks the one that stands as far
on in the row of the source (where nobody has them), of those that have them and of those that wait before it. So rows
form in which everybody hands on what comes, as it comes; nobody asks who stands behind, so no wait is circular.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weft_contracts.ids import NodeId

FALLBACKS: Final = 4
"""Peers that a node may ask beside the first."""
PATIENCE_S: Final = 60.0
"""So long the second in the row waits for its peers before it goes to the source: a piece of 16 MiB takes as long at
2 Mbit/s."""
PATIENCE_EACH_S: Final = 15.0
"""So much longer each that stands behind, which may have it from the one that went before."""
MOST_PATIENCE_S: Final = 180.0
AGAIN_S: Final = 30.0
"""A node to which nothing came for so long asks who is near anew."""


@dataclass(frozen=True, slots=True)
class Near:
    """Whom a node asks for files, in this order. `source_after_s`: seconds in which none of them brought a byte, after
    which it may ask the source; 0: it may at once."""

    peers: tuple[NodeId, ...]
    source_after_s: float


def near(holders: Sequence[NodeId], waiting: Sequence[NodeId], asking: NodeId) -> Near:
    """Pure. `holders` have the files, `waiting` need them and have them not, first who needed them first: healthy ones
    alone, each in one of the two. Who asks and is in neither stands last."""
    place = waiting.index(asking) if asking in waiting else len(waiting)
    others = [node for node in holders if node != asking]
    before = list(waiting[:place])
    if not others and not before:
        return Near((), 0.0)
    row = [*others, *before]
    first = place if others else place - 1  # where nobody has them, the source stands first in the row
    # After the first choice: who has all of them, each node another one first, then who began last before it.
    spread = others[place % len(others) :] + others[: place % len(others)] if others else []
    fallbacks = [node for node in (*spread, *reversed(before)) if node != row[first]]
    patience = min(PATIENCE_S + PATIENCE_EACH_S * place, MOST_PATIENCE_S)
    return Near((row[first], *fallbacks[:FALLBACKS]), patience)
