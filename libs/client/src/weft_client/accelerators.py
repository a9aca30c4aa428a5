"""A node's accelerators in few words: `2 × NVIDIA H100 80GB HBM3 (79.6 GiB)`. Pure."""

from collections import Counter
from typing import TYPE_CHECKING

from weft_client.units import size

if TYPE_CHECKING:
    from weft_api import Device, Hardware, UnsizedDevice


def in_words(hardware: "Hardware") -> str:
    """The accelerators, equal ones together; empty where there are none."""
    sized = [each for each in hardware["devices"] if each["vendor"] != "cpu"]
    counted = Counter([*map(_sized, sized), *map(_unsized, hardware.get("unsized", []))])
    return ", ".join(f"{number} × {words}" if number > 1 else words for words, number in counted.items())


def processor(hardware: "Hardware") -> str:
    """The processor's name; empty where it isn't known."""
    return next((each["name"] for each in hardware["devices"] if each["vendor"] == "cpu"), "")


def notes(hardware: "Hardware") -> list[str]:
    """What could not be found out of it: sentences."""
    return hardware.get("notes", [])


def _sized(device: "Device") -> str:
    budget, memory = device["budget"], device["memory"]
    shown = [size(memory)]
    if budget is not None and budget != memory:
        shown.append(f"{size(budget)} to use")
    if device["unified"]:
        shown.append("the machine's memory")
    return f"{device['name']} ({', '.join(shown)})"


def _unsized(device: "UnsizedDevice") -> str:
    return f"{device['name']} (memory not known: not used)"
