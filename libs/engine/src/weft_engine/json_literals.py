"""Texts as a grammar's literals; many of them as one tree, so that only those that still fit are followed."""

from itertools import groupby
from typing import Final

MAX_LEVELS: Final = 8
"""Branches of the tree; below, texts stand side by side. Each level is a group in a group for llama.cpp's parser."""

_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quoted(text: str) -> str:
    """A text as a grammar's literal."""
    made = "".join(_ESCAPES.get(c, c if c.isprintable() else f"\\U{ord(c):08X}") for c in text)
    return f'"{made}"'


def one_of(texts: list[str], levels: int = MAX_LEVELS) -> str:
    """A grammar of exactly these texts, at least one."""
    return _tree(sorted(set(texts)), levels)


def _tree(texts: list[str], levels: int) -> str:
    if len(texts) == 1 or not levels:
        return " | ".join(map(quoted, texts))
    shared = _shared(texts[0], texts[-1])
    ways = [
        quoted(members[0]) if len(members) == 1 else f"({_tree(members, levels - 1)})"
        for _, group in groupby((text[len(shared) :] for text in texts), key=lambda rest: rest[:1])
        if (members := list(group))
    ]
    return f"{quoted(shared)} ({' | '.join(ways)})" if shared else " | ".join(ways)


def _shared(first: str, last: str) -> str:
    """What all texts begin with, told by the outermost two of their order."""
    length = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:length]
