"""What tools say, read with care: forms differ from release to release, and not knowing has many names."""

import json
from collections.abc import Mapping
from typing import Any, cast

from weft_worker_agent.domain.pci import pci_address
from weft_worker_agent.outbound.machine.accelerators.tool import NoAnswer

Row = Mapping[str, Any]


def parsed(name: str, output: str) -> Any:
    """The JSON in a tool's output, which may begin with warnings. Raises NoAnswer."""
    starts = [at for at in (output.find("{"), output.find("[")) if at >= 0]
    try:
        return json.loads(output[min(starts) :]) if starts else None
    except ValueError:
        raise NoAnswer(f"{name} answers with something that is no JSON") from None


def row(value: Any) -> Row:
    """An object; an empty one where it is something else."""
    return cast("Row", value) if isinstance(value, dict) else {}


def rows(value: Any) -> list[Row]:
    """The objects in a list; nothing where it is no list."""
    return [row(each) for each in cast("list[Any]", value) if isinstance(each, dict)] if isinstance(value, list) else []


def text(value: Any) -> str | None:
    """A word that says something; None for what tools write where they don't know."""
    word = str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    return None if word.lower() in ("", "n/a", "unknown", "none", "not supported") else word


def count(value: Any) -> int | None:
    """A number above zero, also one written as text; else None: no device has no memory."""
    word = text(value)
    try:
        number = int(word) if word is not None and word.isdecimal() else int(float(word or 0))
    except (ValueError, OverflowError):
        return None
    return number if number > 0 else None


def pci(value: Any) -> str:
    """A place on the machine's PCI bus, `0000:4d:00.0`; empty where it is none."""
    return pci_address(text(value))
