"""Accelerators that are made up for development: `2x80GB:nvidia,24GB:amd`."""

import re
from typing import cast, get_args

from weft_contracts.budget import parse_budget
from weft_contracts.facts.values import Vendor

from weft_worker_agent.domain.accelerators import Accelerator

MOST = 64
_PART = re.compile(r"(?:(\d{1,3})\s*x\s*)?([\d.]+\s*[a-z]+)(?::([a-z]+))?", re.IGNORECASE)
_VENDORS = tuple(vendor for vendor in get_args(Vendor) if vendor != "cpu")


class BadSimulation(ValueError):
    """A text that names no simulated accelerators; the message is a sentence for people."""


def parse_simulated(text: str) -> tuple[Accelerator, ...]:
    """The accelerators that a text names; nothing for an empty one. Raises BadSimulation."""
    found: list[Accelerator] = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        match = _PART.fullmatch(part)
        if match is None:
            raise BadSimulation(f"{part!r} names no accelerators: want COUNTxSIZE:VENDOR, like 2x80GB:nvidia")
        count, size, vendor = int(match[1] or 1), match[2].upper(), (match[3] or "nvidia").lower()
        if vendor not in _VENDORS:
            raise BadSimulation(f"{part!r}: {vendor} is no vendor of accelerators; there are {', '.join(_VENDORS)}")
        if not 1 <= count <= MOST or len(found) + count > MOST:
            raise BadSimulation(f"{text!r} names none or more than {MOST} accelerators")
        memory = _bytes(size)
        if memory is None:
            raise BadSimulation(f"{part!r}: {size} is no size of memory: want one like 80GB or 80GiB")
        for _ in range(count):
            number = sum(one.vendor == vendor for one in found)
            name, uuid = f"simulated {vendor} {size}", f"SIM-{vendor}-{number}"
            found.append(Accelerator(cast("Vendor", vendor), number, name, memory, uuid))
    return tuple(found)


def _bytes(size: str) -> int | None:
    try:
        return parse_budget(size).bytes
    except ValueError:
        return None
