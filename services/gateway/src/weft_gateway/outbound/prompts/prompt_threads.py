"""Threads for what is long: loading a tokenizer, rendering and tokenizing a long chat."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")
THREADS: Final = 2
MAX_WAITING: Final = 32


class ThreadsBusy(Exception):
    """As much waits as may."""


class PromptThreads:
    """Two threads and a line before them."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="prompts")
        self.waiting = 0
        """what waits or runs"""

    async def run(self, call: Callable[[], T]) -> T:
        """What a call gives, from a thread; a caller who is cancelled leaves it to end by itself.

        Raises ThreadsBusy at once, and what the call raises.
        """
        if self.waiting >= MAX_WAITING:
            raise ThreadsBusy(f"{MAX_WAITING} long prompts are made already")
        self.waiting += 1
        running = asyncio.get_running_loop().run_in_executor(self._pool, call)
        running.add_done_callback(self._over)
        return await asyncio.shield(running)

    def _over(self, running: "asyncio.Future[T]") -> None:
        self.waiting -= 1
        if not running.cancelled():
            running.exception()  # it may be that nobody waits any more

    def close(self) -> None:
        """What waits is dropped; what runs ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)
