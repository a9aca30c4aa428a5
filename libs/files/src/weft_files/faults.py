"""How a fetch ends when no file comes of it."""

from collections.abc import Sequence


class NotFetched(Exception):
    """No address gave the file; `tries` holds each that was asked, as people call it, and why it did not."""

    def __init__(self, sentence: str, tries: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(sentence)
        self.tries = tuple(tries)


class NoRoom(Exception):
    """The disk has too little room, or had none left midway; the sentence has the numbers."""


class Fault(Exception):
    """One address did not give the file, as what follows its name."""


class Cut(Fault):
    """It broke off or was not there: the same address may give the rest."""


class Refused(Fault):
    """What came, or would have come, is not to be taken, now or in another try."""


class Mismatch(Refused):
    """Whole, and not what it should be."""


class Stopped(Exception):
    """The fetch was cancelled."""
