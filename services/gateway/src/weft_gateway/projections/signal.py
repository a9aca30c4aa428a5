"""A signal of changes: wakes all tasks that wait for the next one, without a list of them."""

import asyncio


class Signal:
    """One writer, any number of waiters. A waiter that comes between two changes misses nothing later."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def fire(self) -> None:
        """Wake all who wait now."""
        before, self._next = self._next, asyncio.Event()
        before.set()

    async def wait(self, timeout: float) -> bool:
        """Return at the next change (True) or after `timeout` seconds (False)."""
        try:
            await asyncio.wait_for(self._next.wait(), timeout)
        except TimeoutError:
            return False
        return True
