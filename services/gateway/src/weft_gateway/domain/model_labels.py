"""Which models have figures of their own: so many at once, so that what is measured doesn't grow with a mesh's models.
Likewise which pairs of an alias and a model that it stands for.

A histogram is some twenty lines of `/metrics`, and each model has six of them.
"""

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

OTHERS = "_other"
"""The label of models beyond the bound. No model bears it: a name begins with a letter or a figure."""
K = TypeVar("K", bound=Hashable)


class OwnFigures(Generic[K]):
    """The first so many that are asked, each for as long as it is there. Their figures stay where they are."""

    def __init__(
        self, most: int, exists: Callable[[K], bool] = lambda _: True, on_gone: Callable[[K], None] = lambda _: None
    ) -> None:
        """`exists` tells whether one is still there; `on_gone` is told of each whose figures end."""
        self._most = most
        self._exists = exists
        self._on_gone = on_gone
        self._those: dict[K, None] = {}

    def __iter__(self) -> Iterator[K]:
        """Those that have figures of their own."""
        return iter(self._those)

    def has(self, one: K) -> bool:
        """Whether it has; it gets them if a place is left."""
        if one not in self._those and len(self._those) >= self._most:
            return False
        self._those[one] = None
        return True

    def sweep(self) -> None:
        """Free the places of those that are gone; for every scrape, not for every request."""
        for one in [one for one in self._those if not self._exists(one)]:
            del self._those[one]
            self._on_gone(one)


class ModelLabels(OwnFigures[str]):
    """Models by name."""

    def label(self, model: str) -> str:
        """What a model's figures are called."""
        return model if self.has(model) else OTHERS


class AliasLabels(OwnFigures[tuple[str, str]]):
    """Aliases, each with a model that it stands for."""

    def labels(self, alias: str, model: str) -> tuple[str, str]:
        """What the figures of the two are called: of those beyond the bound neither is named."""
        return (alias, model) if self.has((alias, model)) else (OTHERS, OTHERS)
