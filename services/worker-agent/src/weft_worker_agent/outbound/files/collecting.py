"""Has models go that nothing needs, while a node's store holds more than it may."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from weft_files.store import Store

_MOST_ASKED: Final = 8
"""Models, in one look."""
_REFUSED_S: Final = 300.0
"""What may not go is not asked about again before, and then behind all others."""


async def anything(files: str) -> bool:
    """Whatever it is, it may go."""
    return True


class Collecting:
    """Of one store, and what was said of its models, which go by their `files_digest`."""

    def __init__(self, store: Store, most_bytes: int) -> None:
        self._store = store
        self._most_bytes = most_bytes
        self._refused: dict[str, float] = {}
        """Which may not go, and when that was said."""

    async def collect(
        self, there: Collection[str], kept: Callable[[], Collection[str]], may_go: Callable[[str], Awaitable[bool]]
    ) -> list[str]:
        """What went of what is there: the least used first. `kept` stays; `may_go` is asked of each before, and what it
        refuses stays."""
        self._refused = {each: at for each, at in self._refused.items() if each in there}
        allowed, asked = set[str](), 0
        while asked < _MOST_ASKED and (open := await self._open_question(kept(), allowed)) is not None:
            asked += 1
            if await may_go(open):
                allowed.add(open)
                self._refused.pop(open, None)
            else:
                self._refused[open] = time.monotonic()
        return await asyncio.to_thread(self._store.collect, self._most_bytes, kept(), only=allowed)

    async def _open_question(self, kept: Collection[str], allowed: Collection[str]) -> str | None:
        """The next that would go and may be asked about: of those that were refused only where there is no other."""
        since = time.monotonic() - _REFUSED_S
        lately = [each for each, at in self._refused.items() if at > since]
        for refused in (self._refused, lately):
            leaving = await asyncio.to_thread(self._store.leaving, self._most_bytes, {*kept, *refused})
            if (open := next((each for each in leaving.layouts if each not in allowed), None)) is not None:
                return open
        return None
