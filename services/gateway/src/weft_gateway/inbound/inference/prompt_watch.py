"""Looks at each model's prompts in turn, so that what can't be had is known, and is had again, though nobody asks."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Final

from weft_contracts.ids import ModelId
from weft_fleet import ModelView

from weft_gateway.domain.prompts.lacking import SHOWN, Lack, LackKind

EVERY_S: Final = 5.0
_AT_ONCE: Final = 16
"""Models, before others have their turn: a card is made anew from all of its model's runs after a fact."""


class PromptWatch:
    """What models lack here, as it was at the last look. Run `run` as a root task."""

    def __init__(self, look: Callable[[ModelView], Lack | None], models: Callable[[], Collection[ModelView]]) -> None:
        """`look`: see `Prompting.look`; `models`: those that are served."""
        self._look = look
        self._models = models
        self._counts = Counter[LackKind]()
        self.shown: Mapping[ModelId, str] = {}
        """Why this gateway makes no prompts of a model, where somebody should know."""

    def count(self, kind: LackKind) -> int:
        """Models."""
        return self._counts[kind]

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await self.look()
            await asyncio.sleep(EVERY_S)

    async def look(self) -> None:
        """One look at all of them."""
        found: dict[ModelId, Lack] = {}
        for number, model in enumerate([*self._models()], 1):
            if (lack := self._look(model)) is not None:
                found[model.id] = lack
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        self._counts = Counter(lack.kind for lack in found.values())
        self.shown = {id: lack.why for id, lack in found.items() if lack.kind in SHOWN}
