"""How texts of strangers stand in sentences: bounded, and without what a terminal would obey or nobody is to see."""

from typing import Final
from urllib.parse import urlsplit

MOST_CHARACTERS: Final = 160


def shown(text: str) -> str:
    """A stranger's text on one line, at most 160 characters."""
    flat = "".join(character if character.isprintable() else "?" for character in text[: MOST_CHARACTERS + 1])
    return flat if len(flat) <= MOST_CHARACTERS else f"{flat[: MOST_CHARACTERS - 1]}…"


def public(url: str) -> str:
    """A URL without what may be secret in it: user, password, query, fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "what is no URL"
    return shown(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")
