"""What else of the gateway may ask about models' cards, and what it gets when a file can't be had."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from weft_contracts.card import Card, CardFile


class CardFileAway(Exception):
    """A file of a card can't be had now; the message is a sentence that says which, and why."""


class CardFiles(Protocol):
    """Models' small files, wherever they are."""

    def card(self, model: str) -> Card | None:
        """The card of a model's present revision, by the name that clients use, aliases resolved; None where nothing
        published one. Pure and cheap: it may be asked for each request, and two answers of one state are equal.
        """
        ...

    async def file(self, model: str, file: CardFile) -> Path:
        """Where a card's file lies on this host, verified; it is fetched if it isn't here.

        What lies there is never changed, and stays for an hour at least. Raises CardFileAway, and again for a while
        without another try.
        """
        ...


@dataclass(frozen=True, slots=True)
class CardSettings:
    """Where files lie on this host and who may be asked for them. Sizes are bytes."""

    folder: Path
    most_bytes: int = 1 << 30
    """Of one file."""
    keep_bytes: int = 4 << 30
    """Of all that are kept; the least used go first."""
    hub: str = ""
    """Empty: as the environment says."""
    allow: str = ""
    """`host` or `host:port`, with commas between."""
