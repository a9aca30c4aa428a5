"""Which models have figures of their own: so many at once, so that what is measured doesn't grow with a mesh's models.

A histogram is some twenty lines of `/metrics`, and each model has six of them.
"""

from collections.abc import Callable, Iterator

OTHERS = "_other"
"""The label of models beyond the bound. No model bears it: a name begins with a letter or a figure."""


class ModelLabels:
    """The first so many models that are asked, each for as long as it is there. Their figures stay where they are."""

    def __init__(
        self,
        most: int,
        exists: Callable[[str], bool] = lambda _: True,
        on_gone: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`exists` tells whether a model of a name is still there; `on_gone` is told of each whose figures end."""
        self._most = most
        self._exists = exists
        self._on_gone = on_gone
        self._names: dict[str, None] = {}

    def __iter__(self) -> Iterator[str]:
        """The models that have figures of their own."""
        return iter(self._names)

    def label(self, model: str) -> str:
        """What a model's figures are called."""
        if model in self._names:
            return model
        if len(self._names) >= self._most:
            return OTHERS
        self._names[model] = None
        return model

    def sweep(self) -> None:
        """Free the places of models that are gone; for every scrape, not for every request."""
        for name in [name for name in self._names if not self._exists(name)]:
            del self._names[name]
            self._on_gone(name)
