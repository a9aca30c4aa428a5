"""What takes long is done in turns, so that streams and all else go on meanwhile."""

import asyncio
from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


async def in_turns(steps: Generator[None, None, T]) -> T:
    """What the steps come to; between two of them others have their turn."""
    while True:
        try:
            next(steps)
        except StopIteration as over:
            return over.value
        await asyncio.sleep(0)
