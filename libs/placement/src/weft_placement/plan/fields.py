"""One object of a plan's file, field by field; what is wrong is told with its path."""

from collections.abc import Collection, Mapping
from typing import cast

from weft_placement.plan.faults import PlanFault
from weft_placement.plan.sizes import WANTED, size_of

_LONGEST = 200
_LONGEST_S = 1_000_000_000
MOST_ITEMS = 100_000
"""In one list."""


class Fields:
    """An object of the file. Raises PlanFault: here, and from every method where a field is not what it should be."""

    def __init__(self, value: object, where: str, known: Collection[str]) -> None:
        self.where = where
        if not isinstance(value, Mapping):
            raise PlanFault(where or "the file", f"want an object with {', '.join(known)}")
        self._values = cast("Mapping[object, object]", value)
        for name in self._values:
            if name not in known:
                raise PlanFault(self.at(str(name)[:_LONGEST]), f"there is no such field; there are {', '.join(known)}")

    def at(self, name: str) -> str:
        """A field's path."""
        return f"{self.where}.{name}" if self.where else name

    def has(self, name: str) -> bool:
        """Whether the field is there; one that says nothing is not."""
        return self._values.get(name) is not None

    def get(self, name: str) -> object:
        """As it stands there; None: it isn't there."""
        return self._values.get(name)

    def fault(self, name: str, wanted: str) -> PlanFault:
        """What is wrong with a field."""
        return PlanFault(self.at(name), wanted)

    def text(self, name: str, default: str | None = None) -> str:
        """A text of one line; without a default it must be there."""
        value = self.get(name)
        if value is None and default is not None:
            return default
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)  # YAML reads a name of digits as a number
        if not isinstance(value, str) or not value or not value.isprintable() or len(value) > _LONGEST:
            raise self.fault(name, f"want a text of at most {_LONGEST} characters")
        return value

    def one_of(self, name: str, allowed: Collection[str], default: str) -> str:
        """One of these."""
        value = self.text(name, default)
        if value not in allowed:
            raise self.fault(name, f"want one of {', '.join(allowed)}")
        return value

    def whole(self, name: str, least: int, default: int, most: int = 1 << 31) -> int:
        """A whole number of at least `least`."""
        value = self.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.fault(name, f"want a whole number {'above 0' if least == 1 else f'from {least} on'}")
        if value > most:
            raise self.fault(name, f"want a whole number of at most {most}")
        return value

    def whole_or_none(self, name: str) -> int | None:
        """A whole number above 0; None: it isn't there."""
        return self.whole(name, 1, 1) if self.has(name) else None

    def share(self, name: str) -> float | None:
        """A number above 0 and up to 1; None: it isn't there."""
        value = self.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
            raise self.fault(name, "want a share above 0 and up to 1")
        return float(value)

    def seconds(self, name: str) -> float:
        """A number of seconds from 0 on; 0: it isn't there."""
        value = self.get(name)
        if value is None:
            return 0.0
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LONGEST_S:
            raise self.fault(name, f"want a number from 0 on, of at most {_LONGEST_S}")
        return float(value)

    def flag(self, name: str) -> bool | None:
        """true or false; None: it isn't there."""
        value = self.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.fault(name, "want true or false")
        return value

    def size(self, name: str) -> int | None:
        """Bytes; None: it isn't there."""
        value = self.get(name)
        found = None if value is None else size_of(value)
        if value is not None and found is None:
            raise self.fault(name, WANTED)
        return found

    def items(self, name: str) -> list[object]:
        """A list; one that isn't there is empty."""
        value = self.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.fault(name, "want a list")
        found = cast("list[object]", value)
        if len(found) > MOST_ITEMS:
            raise self.fault(name, f"has {len(found)} items, {MOST_ITEMS} are allowed")
        return found

    def objects(self, name: str, known: Collection[str]) -> "list[Fields]":
        """A list of objects with these fields."""
        return [Fields(each, f"{self.at(name)}[{place}]", known) for place, each in enumerate(self.items(name))]

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        found: list[str] = []
        for place, each in enumerate(self.items(name)):
            if isinstance(each, int) and not isinstance(each, bool):
                each = str(each)
            if not isinstance(each, str) or not each.isprintable() or len(each) > _LONGEST:
                raise self.fault(f"{name}[{place}]", f"want a text of at most {_LONGEST} characters")
            found.append(each)
        return found

    def mapping(self, name: str) -> Mapping[str, object]:
        """An object whose fields may bear any name; one that isn't there is empty."""
        value = self.get(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self.fault(name, "want an object")
        return {str(key): each for key, each in cast("Mapping[object, object]", value).items()}

    def labels(self, name: str) -> dict[str, str]:
        """Labels: texts by name."""
        found: dict[str, str] = {}
        for key, value in self.mapping(name).items():
            if not isinstance(value, str | int) or isinstance(value, bool):
                raise self.fault(f"{name}.{key}", "want a text; true, false and the like need quotes")
            found[key] = str(value)
        return found
