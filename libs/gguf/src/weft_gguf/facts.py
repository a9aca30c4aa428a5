"""A header's values by key, each asked for with its type."""

from collections.abc import Mapping

from weft_gguf.reader import NotGguf, Value


class Facts:
    """Of one file; what is not there, or of another type, is as if the file didn't say it."""

    def __init__(self, file: str, values: Mapping[str, Value]) -> None:
        self._file = file
        self._values = values

    def text(self, key: str) -> str:
        """Empty: none."""
        value = self._values.get(key, "")
        return value if isinstance(value, str) else ""

    def flag(self, key: str) -> bool | None:
        """None: it isn't said."""
        value = self._values.get(key)
        return value if isinstance(value, bool) else None

    def maybe_integer(self, key: str) -> int | None:
        """None: it isn't said."""
        value = self._values.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def integer(self, key: str, default: int) -> int:
        """The default where it isn't said."""
        value = self.maybe_integer(key)
        return default if value is None else value

    def count(self, key: str) -> int:
        """How many elements an array has, kept or not."""
        value = self._values.get(key)
        return value.length if isinstance(value, tuple) else 0

    def per_layer(self, key: str, layers: int) -> tuple[int, ...]:
        """A number that a file gives once for all layers, or for each."""
        value = self._values.get(key)
        if isinstance(value, tuple):
            numbers = tuple(item for item in value.items if isinstance(item, int))
            if len(numbers) != value.length:
                raise NotGguf(f"{self._file} is not a readable GGUF file: {key} is no list of numbers")
            return numbers
        number = self.maybe_integer(key)
        return () if number is None else (number,) * layers
