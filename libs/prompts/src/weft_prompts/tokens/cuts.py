"""Where the texts of a tokenizer may be cut, so that the ids of the parts are those of the whole."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

MAX_ADDED: Final = 2_000
"""Added tokens of a tokenizer whose texts are cut at all."""
MAX_MARKERS: Final = 512
MAX_MARKER: Final = 128
"""Characters of an added token of such a tokenizer."""

AddedTokens = Sequence[Mapping[str, Any]]
"""As `tokenizer.json` tells them."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where a tokenizer's texts may be cut, and what it puts around each."""

    marker: re.Pattern[str]
    before: list[int] = field(default_factory=list[int])
    after: list[int] = field(default_factory=list[int])


def cuts_of(added: AddedTokens, encode: Callable[[str, bool], list[int]]) -> Cuts | None:
    """None where no text may be cut; up to a second of CPU for a hostile file. Raises what `encode` raises.

    `encode`: a text's ids; with true, what the model wants around it is there.
    """
    markers = safe_markers(added)
    if not markers:
        return None
    alone = encode(markers[0], False)
    around = encode(markers[0], True)
    if len(alone) != 1 or around.count(alone[0]) != 1:
        return None
    at = around.index(alone[0])
    return Cuts(re.compile("|".join(map(re.escape, markers))), around[:at], around[at + 1 :])


def safe_markers(added: AddedTokens) -> list[str]:
    """Tokens that are found wherever they stand in a text, since none of the others can overlap them there.

    None where there are more added tokens, or longer ones, than are held against one another.
    """
    texts = [str(each.get("content", "")) for each in added]
    if len(texts) > MAX_ADDED or any(len(text) > MAX_MARKER for text in texts):
        return []
    plain = [text for text, each in zip(texts, added, strict=True) if len(text) >= 3 and _stands_alone(each)]
    begins = {text[:size] for text in texts for size in range(1, len(text))}
    ends = {text[-size:] for text in texts for size in range(1, len(text))}

    def is_safe(text: str) -> bool:
        """Whether none begins or ends within it, but the same text as a whole."""
        sizes = range(1, len(text))
        if any(text[:size] in ends or text[-size:] in begins for size in sizes):
            return False
        return not any(text != other and (text in other or other in text) for other in texts)

    return [text for text in plain[:MAX_MARKERS] if is_safe(text)]


def _stands_alone(token: Mapping[str, Any]) -> bool:
    """Whether what is around it changes nothing."""
    return bool(token.get("special")) and not any(
        token.get(how) for how in ("normalized", "lstrip", "rstrip", "single_word")
    )
