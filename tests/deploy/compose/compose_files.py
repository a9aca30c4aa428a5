"""Compose's files, read and laid over one another as it does, with each variable at its default."""

import re
from pathlib import Path
from typing import Any, cast

import yaml

_VARIABLE = re.compile(r"\$(?:\$|\{([A-Z_]+)(?::-([^}]*))?\})")


def read(texts: list[str]) -> dict[str, Any]:
    """One document out of several. Raises yaml.YAMLError."""
    whole: dict[str, Any] = {}
    for text in texts:
        whole = _over(whole, yaml.load(text, yaml.CSafeLoader))
    return _told(whole)


def files(folder: Path, *more: str) -> list[str]:
    """The texts of compose.yaml and of what is laid over it."""
    return [(folder / f"compose{each}.yaml").read_text() for each in ("", *(f".{name}" for name in more))]


def _over(below: Any, above: Any) -> Any:
    if isinstance(below, dict) and isinstance(above, dict):
        first, second = cast("dict[str, Any]", below), cast("dict[str, Any]", above)
        return first | {name: _over(first.get(name), value) for name, value in second.items()}
    if isinstance(below, list) and isinstance(above, list):
        return [*cast("list[Any]", below), *cast("list[Any]", above)]
    return cast("Any", below if above is None else above)


def _told(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _told(each) for name, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_told(each) for each in cast("list[Any]", value)]
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: found[2] or "" if found[1] else "$", value)
    return value
