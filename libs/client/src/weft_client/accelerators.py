"""A node's accelerators in few words: `2 × NVIDIA H100 80GB HBM3 (79.6 GiB)`. Pure."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

from weft_client.units import size

Body = Mapping[str, Any]


def in_words(hardware: Body) -> str:
    """The accelerators, equal ones together; empty where there are none."""
    sized = [each for each in _list(hardware.get("devices")) if each.get("vendor") != "cpu"]
    unsized = _list(hardware.get("unsized"))
    counted = Counter([*map(_sized, sized), *map(_unsized, unsized)])
    return ", ".join(f"{number} × {words}" if number > 1 else words for words, number in counted.items())


def processor(hardware: Body) -> str:
    """The processor's name; empty where it isn't known."""
    return next((str(each["name"]) for each in _list(hardware.get("devices")) if each.get("vendor") == "cpu"), "")


def notes(hardware: Body) -> list[str]:
    """What could not be found out of it: sentences."""
    return [str(each) for each in cast("list[object]", hardware.get("notes") or [])]


def _sized(device: Body) -> str:
    budget, memory = device.get("budget"), device.get("memory")
    shown = [size(memory)]
    if budget is not None and budget != memory:
        shown.append(f"{size(budget)} to use")
    if device.get("unified"):
        shown.append("the machine's memory")
    return f"{device.get('name')} ({', '.join(shown)})"


def _unsized(device: Body) -> str:
    return f"{device.get('name')} (memory not known: not used)"


def _list(value: object) -> list[Body]:
    return cast("list[Body]", value) if isinstance(value, list) else []
