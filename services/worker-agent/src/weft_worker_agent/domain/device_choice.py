"""Which of its accelerators a worker uses: `all`, `none`, or a list of numbers, vendors and UUIDs."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

from weft_contracts.facts.values import Vendor

from weft_worker_agent.domain.accelerators import Accelerator

WANT = "want all, none, or entries like 0, nvidia:1, amd, GPU-<UUID>, each to use it or, with ! before it, to leave out"
_NUMBER = re.compile(r"(?:([a-z]+):)?(\d{1,3})")
_UUID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{3,79}")
_VENDORS = frozenset(get_args(Vendor)) - {"cpu"}


class BadChoice(ValueError):
    """A text that names no choice; the message is a sentence for people."""


@dataclass(frozen=True, slots=True)
class ChoiceEntry:
    """One word of a choice."""

    text: str
    leaves_out: bool

    def means(self, one: Accelerator) -> bool:
        """Whether it speaks of this accelerator. A UUID may be cut short after its first 8 characters."""
        if found := _NUMBER.fullmatch(self.text):
            return one.number == int(found[2]) and found[1] in (None, one.vendor)
        if self.text in _VENDORS:
            return one.vendor == self.text
        uuid = one.uuid.lower()
        return uuid == self.text or (len(self.text) >= 8 and uuid.startswith(self.text))


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """Without entries all are used."""

    entries: tuple[ChoiceEntry, ...] = ()
    none: bool = False

    def of(self, found: Iterable[Accelerator]) -> tuple[Accelerator, ...]:
        """The accelerators to use: those named, or all where none is; never those to be left out."""
        named = [entry for entry in self.entries if not entry.leaves_out]
        left_out = [entry for entry in self.entries if entry.leaves_out]
        return tuple(
            one
            for one in found
            if not self.none
            and (not named or any(entry.means(one) for entry in named))
            and not any(entry.means(one) for entry in left_out)
        )

    def idle(self, found: Iterable[Accelerator]) -> tuple[str, ...]:
        """Entries that speak of no accelerator there is: somebody meant another machine, or one is gone."""
        there = tuple(found)
        return tuple(entry.text for entry in self.entries if not any(entry.means(one) for one in there))


def parse_choice(text: str) -> DeviceChoice:
    """The choice that a text names. Raises BadChoice."""
    words = [word.strip().lower() for word in text.split(",") if word.strip()]
    if words in ([], ["all"]):
        return DeviceChoice()
    if words == ["none"]:
        return DeviceChoice(none=True)
    return DeviceChoice(tuple(_entry(word) for word in words))


def _entry(word: str) -> ChoiceEntry:
    text = word.removeprefix("!").strip()
    number = _NUMBER.fullmatch(text)
    if number is not None and number[1] is not None and number[1] not in _VENDORS:
        raise BadChoice(f"{word!r}: {number[1]} is no vendor of accelerators; there are {', '.join(sorted(_VENDORS))}")
    if text in ("all", "none") or (number is None and text not in _VENDORS and not _UUID.fullmatch(text)):
        raise BadChoice(f"{word!r} names no accelerator: {WANT}")
    return ChoiceEntry(text, word.startswith("!"))
