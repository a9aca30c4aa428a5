"""One attack: what is tried, what the mesh does about it, and the trying itself."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from .foe import Foe

__all__ = ["CUT_OFF", "Attack", "Foe"]


CUT_OFF = "Cut off by the registry: its credential is revoked and its replicas are replaced, until an admin resumes it."


@dataclass(frozen=True)
class Attack:
    """Its sentences stand in the registry's ATTACKS.md."""

    tries: str
    does: str
    act: Callable[[Foe], Coroutine[Any, Any, None]]
    """Tries it, and checks the answer. That nothing came of it is checked by the story."""
    suspect: str = ""
    """The kind of the foe's aggregate that is set aside for it."""
    before: str = ""
    """What it got before the mesh did that; empty: nothing, or nobody knows."""
    cut_off: bool = False
    """Whether the registry cuts the foe off for it."""
