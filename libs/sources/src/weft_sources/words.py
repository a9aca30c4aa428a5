"""How names of strangers are shown in sentences: bounded, and without what a terminal would obey."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

MOST_SHOWN: Final = 12
MOST_CHARACTERS: Final = 160


def shown(text: str) -> str:
    """A stranger's text on one line, at most 160 characters."""
    flat = "".join(character if character.isprintable() else "?" for character in text[: MOST_CHARACTERS + 1])
    return flat if len(flat) <= MOST_CHARACTERS else f"{flat[: MOST_CHARACTERS - 1]}…"


def candidates(names: Sequence[str]) -> str:
    """At most 12 of the names, and how many there are besides."""
    first = ", ".join(shown(name) for name in names[:MOST_SHOWN])
    return f"{first} and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else first


def public(url: str) -> str:
    """A URL without what may be secret in it: user, password, query."""
    parts = urlsplit(url)
    return shown(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")
