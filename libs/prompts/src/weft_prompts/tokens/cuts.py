"""Where the texts of a tokenizer may be cut, so that the ids of the parts are those of the whole."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

MAX_ADDED_CHARACTERS: Final = 512 * 1024
"""Characters of all added tokens of a tokenizer whose texts are cut at all."""
MAX_MARKERS: Final = 512
MAX_MARKER: Final = 128
"""Characters of an added token of such a tokenizer."""

_NONE: Final = frozenset[str]()
AddedTokens = Sequence[Mapping[str, Any]]
"""As `tokenizer.json` tells them."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where a tokenizer's texts may be cut, and what it puts around each."""

    marker: re.Pattern[str]
    before: list[int] = field(default_factory=list[int])
    after: list[int] = field(default_factory=list[int])


def cuts_of(added: AddedTokens, encode: Callable[[str, bool], list[int]]) -> Cuts | None:
    """None where no text may be cut; 0.3 s of CPU for 20,000 added tokens, up to 1.5 s for a hostile file. Raises what
    `encode` raises.

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

    None where there are more characters of added tokens, or longer tokens, than are held against one another.
    """
    texts = [str(each.get("content", "")) for each in added]
    if sum(map(len, texts)) > MAX_ADDED_CHARACTERS or any(len(text) > MAX_MARKER for text in texts):
        return []
    plain = [text for text, each in zip(texts, added, strict=True) if len(text) >= 3 and _stands_alone(each)]
    markers, others = plain[:MAX_MARKERS], frozenset(texts)
    unsafe = _overlapped(markers, others) | _nested(markers, others)
    return [text for text in markers if text not in unsafe]


def _overlapped(markers: Sequence[str], others: Collection[str]) -> set[str]:
    """Those of which one of the others begins or ends within, but the same text as a whole."""
    heads, tails = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for text in markers:
        for size in range(1, len(text)):
            heads[text[:size]].add(text)
            tails[text[-size:]].add(text)
    found = set[str]()
    for other in others:
        for size in range(1, len(other)):
            found |= heads.pop(other[-size:], _NONE) | tails.pop(other[:size], _NONE)
    return found


def _nested(markers: Sequence[str], others: Collection[str]) -> set[str]:
    """Those that stand in one of the others, or one of which stands in them."""
    joined, sizes = "\0".join(others), {len(other) for other in others}
    found = set[str]()
    for text in markers:
        first = joined.index(text)
        within = (text[at : at + size] for size in sizes if size < len(text) for at in range(len(text) - size + 1))
        if joined.find(text, first + 1) >= 0 or any(part in others for part in within):
            found.add(text)
    return found


def _stands_alone(token: Mapping[str, Any]) -> bool:
    """Whether what is around it changes nothing."""
    return bool(token.get("special")) and not any(
        token.get(how) for how in ("normalized", "lstrip", "rstrip", "single_word")
    )
