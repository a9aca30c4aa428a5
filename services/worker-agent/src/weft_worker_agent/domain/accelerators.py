"""What the tools of vendors said of this machine's accelerators, put together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from weft_contracts.facts.values import Vendor

Tool = Literal["nvidia", "amd", "intel", "apple", "vulkan"]


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One, as a tool describes it. None is unknown, which is not zero."""

    vendor: Vendor
    number: int
    """As its vendor's tools count it, from 0."""
    name: str
    memory: int | None
    """Bytes of its own; None also where it has the machine's (`unified`)."""
    uuid: str = ""
    driver: str | None = None
    compute_capability: str | None = None
    unified: bool = False
    pci: str = ""
    """`0000:4d:00.0`; empty: not told."""
    integrated: bool = False
    """A part of the processor, without memory of its own."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one tool answered."""

    tool: Tool
    found: tuple[Accelerator, ...] = ()
    unknown: str | None = None
    """Why it can't be known what there is: a sentence for people. None: it was answered."""


@dataclass(frozen=True, slots=True)
class Findings:
    """All that is known of the accelerators, each once."""

    accelerators: tuple[Accelerator, ...] = ()
    silent: frozenset[Vendor] = frozenset()
    """Vendors whose own tool gave no answer: what there was of them is neither there nor gone."""
    notes: tuple[str, ...] = ()


_OWN: tuple[Vendor, ...] = ("nvidia", "amd", "intel", "apple")


def together(looks: Iterable[Look]) -> Findings:
    """Each vendor's own tool is believed; Vulkan only where there is no word from one.

    The graphics of Intel's processors are left out, whoever tells of them: they compute with the processor's memory
    and little else, engines for Intel's cards don't take them, and what was claimed there would be claimed twice.
    """
    by_tool = {look.tool: look for look in looks}
    silent: frozenset[Vendor] = frozenset(v for v in _OWN if v in by_tool and by_tool[v].unknown is not None)
    found = [one for vendor in _OWN if vendor in by_tool for one in _in_order(by_tool[vendor].found)]
    known = {one.vendor for one in found} | silent
    if (vulkan := by_tool.get("vulkan")) is not None:
        found.extend(one for one in _in_order(vulkan.found) if one.vendor not in known)
    notes = tuple(look.unknown for _, look in sorted(by_tool.items()) if look.unknown is not None)
    return Findings(tuple(one for one in found if not (one.vendor == "intel" and one.integrated)), silent, notes)


def _in_order(found: Sequence[Accelerator]) -> list[Accelerator]:
    return sorted(found, key=lambda one: one.number)
