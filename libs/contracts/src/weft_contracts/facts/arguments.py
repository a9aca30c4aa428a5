"""What an engine's argument may be: a plain value, or a bounded piece of JSON."""

import math
from typing import Annotated

from pydantic import AfterValidator, Discriminator, JsonValue, Tag

Scalar = bool | int | float | str
MOST_DEPTH = 8
"""Lists and objects within one another, in one of an engine's arguments."""
MOST_VALUES = 1024
"""In one of an engine's arguments, counting each list, object and name."""


def _bounded(given: list[JsonValue] | dict[str, JsonValue]) -> list[JsonValue] | dict[str, JsonValue]:
    """Raises ValueError for what is too deep or too large, or no JSON."""
    open: list[tuple[JsonValue, int]] = [(given, 1)]
    count = 0
    while open:
        value, depth = open.pop()
        count += 1 + (len(value) if isinstance(value, dict) else 0)
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
        if count + (len(inner) if inner is not None else 0) > MOST_VALUES:
            raise ValueError(f"an argument holds at most {MOST_VALUES} values")
        if inner is not None and depth > MOST_DEPTH:
            raise ValueError(f"an argument's lists and objects lie at most {MOST_DEPTH} deep in one another")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{value} is no number of JSON")
        open += [(each, depth + 1) for each in inner or ()]
    return given


def _shape(given: object) -> str:
    return "list" if isinstance(given, list) else "object" if isinstance(given, dict) else "plain"


ArgumentValue = Annotated[
    Annotated[Scalar, Tag("plain")]
    | Annotated[list[JsonValue], AfterValidator(_bounded), Tag("list")]
    | Annotated[dict[str, JsonValue], AfterValidator(_bounded), Tag("object")],
    Discriminator(_shape),
]
"""What one of an engine's arguments may be: a plain value, or a bounded list or object of JSON."""
