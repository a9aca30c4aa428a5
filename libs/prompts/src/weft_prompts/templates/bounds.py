"""How much one rendering may do: counted inside it, so that one chat and template always end in the same way."""

from dataclasses import dataclass
from typing import Final, NoReturn

from weft_prompts.templates.refusals import TemplateRefused

SCANNED_A_STEP: Final = 64
"""Characters that are read or copied for the price of one step."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one rendering. A step is about one operation of the template, or one item that an operation looks at."""

    steps: int = 4_000_000
    text: int = 8 << 20
    """Characters of one text, the output among them."""
    made: int = 64 << 20
    """Characters of all texts that are made on the way."""
    items: int = 200_000
    """Of one list."""
    calls: int = 48
    """Macros and recursive loops within one another."""


class Meter:
    """What a rendering has left. Every method raises TemplateRefused when that is nothing."""

    __slots__ = ("_made", "_steps", "bounds", "calls")

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._steps = bounds.steps
        self._made = bounds.made
        self.calls = 0

    @property
    def steps(self) -> int:
        """Done so far."""
        return self.bounds.steps - self._steps

    def step(self, steps: int) -> None:
        self._steps -= steps
        if self._steps < 0:
            _refuse(f"the chat template takes more than {self.bounds.steps} steps for this chat")

    def scan(self, characters: int) -> None:
        """That many characters are looked at."""
        self.step(1 + characters // SCANNED_A_STEP)

    def will_make(self, characters: int) -> None:
        """A text of at most that many characters is about to be made."""
        if characters > self.bounds.text:
            _refuse(f"the chat template makes a text of more than {self.bounds.text} characters")

    def made(self, text: str) -> str:
        """This text was made."""
        self.copied(len(text))
        return text

    def copied(self, characters: int) -> None:
        """So many characters of text now take memory."""
        self.will_make(characters)
        self._made -= characters
        if self._made < 0:
            _refuse(f"the chat template makes more than {self.bounds.made} characters of text on its way")
        self.step(1 + characters // SCANNED_A_STEP)

    def will_list(self, items: int) -> None:
        """A list of that many items is about to be made."""
        if items > self.bounds.items:
            _refuse(f"the chat template makes a list of more than {self.bounds.items} items")
        self.step(1 + items)

    def enter(self) -> None:
        """A macro or a recursive loop begins; `leave` ends it."""
        self.calls += 1
        if self.calls > self.bounds.calls:
            _refuse(f"the chat template calls itself more than {self.bounds.calls} deep")

    def leave(self) -> None:
        self.calls -= 1


def _refuse(sentence: str) -> NoReturn:
    raise TemplateRefused(sentence)
