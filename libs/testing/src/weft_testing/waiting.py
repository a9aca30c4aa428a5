"""Bounded waits for what real servers and processes will do."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

BOUND_S = 30.0
_STEP_S = 0.05
T = TypeVar("T")


async def until(probe: Callable[[], Awaitable[T]], timeout: float = BOUND_S) -> T:
    """Ask again and again until the answer is true, and return it. Raises TimeoutError with the last answer."""
    answer = None
    try:
        async with asyncio.timeout(timeout):
            while not (answer := await probe()):
                await asyncio.sleep(_STEP_S)
    except TimeoutError:
        raise TimeoutError(f"not so within {timeout:g} s; the last answer was {answer!r}") from None
    return answer
