"""Why a gateway makes no prompts of a model: in a sentence, and as one of a few kinds."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

LackKind = Literal["no_card", "waiting", "away", "unreadable", "no_template", "no_ids", "differs"]
"""`away`: files can't be had; `unreadable`: what came can't be used; `no_template`: texts alone, chats not; `no_ids`:
the engine tells none; `differs`: they are not its engine's; `waiting`: it is not known yet."""
KINDS: Final[tuple[LackKind, ...]] = get_args(LackKind)
SHOWN: Final[tuple[LackKind, ...]] = ("away", "unreadable", "differs")
"""What somebody should look at; the others are as the model or its engine is, or pass."""


@dataclass(frozen=True, slots=True)
class Lack:
    """What one model lacks."""

    kind: LackKind
    why: str
