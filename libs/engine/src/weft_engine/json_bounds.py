"""Bounds that a schema sets to numbers and to lengths, each within what a grammar can keep."""

from typing import Final

from weft_engine.json_schema import Schema, SchemaRefused, is_whole

MAX_REPEATS: Final = 1000
"""of characters or items: each costs the grammar a rule"""
MAX_TOTAL_REPEATS: Final = 8000


def number_bounds(type: str, schema: Schema, at: str) -> tuple[int | None, int | None]:
    """The least and the greatest number that a schema allows, None where it says none. Raises SchemaRefused."""
    bounds: list[int | None] = []
    for keyword, exclusive, step in (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)):
        value, beyond = schema.get(keyword), schema.get(exclusive)
        if beyond is not None and (value is not None or type == "number"):
            raise SchemaRefused(f"the JSON schema's {exclusive!r} at {at} is supported for integers, alone")
        bound = beyond if beyond is not None else value
        if bound is None:
            bounds.append(None)
            continue
        if isinstance(bound, bool) or not isinstance(bound, int | float) or not is_whole(bound) or abs(bound) > 1e15:
            raise SchemaRefused(f"the JSON schema's bound {str(bound)[:40]} at {at} must be a whole number")
        bounds.append(int(bound) + (step if beyond is not None else 0))
    low, high = bounds
    return low, high


class LengthBounds:
    """Reads the lengths of one document's texts and lists, and bounds what they add up to."""

    def __init__(self) -> None:
        self._total = 0

    def of(self, schema: Schema, low: str, high: str, at: str) -> tuple[int, int | None]:
        """The least and the greatest length, None where there is no greatest, under these keywords.

        Raises SchemaRefused.
        """
        least, most = schema.get(low, 0), schema.get(high)
        for keyword in (low, high):
            if keyword not in schema:
                continue
            value = schema[keyword]
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_REPEATS:
                raise SchemaRefused(
                    f"the JSON schema's {keyword!r} at {at} is {str(value)[:40]}; it must be from 0 to {MAX_REPEATS}"
                )
            self._total += value
        if self._total > MAX_TOTAL_REPEATS:
            raise SchemaRefused(f"the JSON schema's lengths add up to more than {MAX_TOTAL_REPEATS}")
        if most is not None and least > most:
            raise SchemaRefused(f"the JSON schema's {low!r} at {at} is above its {high!r}")
        return least, most
