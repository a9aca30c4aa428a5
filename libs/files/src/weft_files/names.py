"""Which names files and layouts may have: those that stay below their folder on every file system."""

import re
from typing import Final

from weft_contracts.facts.source import FILE_NAME

MOST_CHARACTERS: Final = 255
_FILE: Final = re.compile(FILE_NAME)
_LAYOUT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+@=-]{0,199}")


class BadName(ValueError):
    """A name that could leave its folder, or that a file system would not take."""


def check_file_name(name: str) -> None:
    """Raises BadName unless it is a relative path of at most 8 plain parts, none of which begins with a dot."""
    if len(name) > MOST_CHARACTERS or not _FILE.fullmatch(name):
        raise BadName(f"{name[:80]!r} can't be a file's name: want letters, digits and ._+@=- in parts between /")


def check_layout_name(name: str) -> None:
    """Raises BadName unless it is one plain part."""
    if not _LAYOUT.fullmatch(name):
        raise BadName(f"{name[:80]!r} can't be a layout's name: want letters, digits and ._+@=-, no more than 200")
