"""A bell that many may ring and one waits for."""

import asyncio


class Wake:
    """Rings are not counted: who wakes looks at everything."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        self._event.set()

    async def wait(self, timeout: float) -> None:
        """Return at the next ring, or after `timeout` seconds without one."""
        try:
            async with asyncio.timeout(timeout):
                await self._event.wait()
        except TimeoutError:
            pass
        self._event.clear()
