"""Whether a gateway's token ids are an engine's own, by what both made of the same probes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weft_prompts.way import Way

Ids = Sequence[int]
MAX_SHOWN: Final = 60
"""Characters of a prompt in a reason."""


@dataclass(frozen=True, slots=True)
class PromptIds:
    """A prompt that this gateway made."""

    ids: Ids
    card: str
    """Digest of the card that it was made by."""
    way: Way


@dataclass(frozen=True, slots=True)
class Probed:
    """One probe. What nobody made is None."""

    what: str
    """The probe in a few words."""
    ours: Mapping[Way, Ids | None]
    theirs: Ids | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of a comparison with one run of a replica."""

    way: Way | None
    """In which the gateway makes the engine's very ids; None: in none."""
    why: str
    """Why not; empty: it does."""
    chats: bool = False
    """Chats were compared too; else texts alone, since there is no template here."""
    context_tokens: int = 0
    """What the engine's context holds, prompt and answer together."""


def compared(probes: Sequence[Probed]) -> tuple[Way | None, str]:
    """The way in which all that both made is equal; None and why, where there is none.

    A chat that can't be rendered here is no difference: the engine is sent such a chat as it is.
    """
    told = ""
    for way in Way:
        difference = next((said for probe in probes if (said := _difference(probe, way))), "")
        if not difference:
            return way, ""
        told = told or difference
    return None, told


def _difference(probe: Probed, way: Way) -> str:
    ours, theirs = probe.ours.get(way), probe.theirs
    if ours is None or (theirs is not None and list(ours) == list(theirs)):
        return ""
    what = probe.what if len(probe.what) <= MAX_SHOWN else probe.what[:MAX_SHOWN] + "…"
    if theirs is None:
        return f"the engine refuses {what}, which the model's card renders"
    if len(ours) != len(theirs):
        return f"{what} is {len(theirs)} tokens for the engine and {len(ours)} by the model's card"
    at = next(place for place, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1])
    return f"{what} has the id {theirs[at]} at place {at} for the engine and {ours[at]} by the model's card"
