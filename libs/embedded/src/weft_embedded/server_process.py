"""NATS and Postgres as parts: each under a supervisor of its own, which `weft_servers` starts."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

_LOOK_S = 0.2
"""Between two looks whether a server still runs."""
SUPERVISOR_S = 3.0
"""Above the grace time: what the supervisor needs for its own part."""


class Server(Protocol):
    """What `weft_servers` starts."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def stop(self) -> int: ...
    def kill(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A server under its supervisor."""

    server: Server

    @property
    def pid(self) -> int:
        return self.server.pid

    async def wait(self) -> int:
        while (status := self.server.poll()) is None:
            await asyncio.sleep(_LOOK_S)
        return status

    async def stop(self, grace_s: float) -> int:
        """End it by its supervisor, which has a grace time of its own; both by force where that hangs."""
        stopping = asyncio.create_task(asyncio.to_thread(self.server.stop))
        await asyncio.wait([stopping], timeout=grace_s + SUPERVISOR_S)
        if not stopping.done():
            self.server.kill()
        return await stopping

    def kill(self) -> None:
        self.server.kill()


Start = Callable[[Callable[[], bool]], Server]
"""Blocks until a server is ready. What it is given tells it whether the start was given up meanwhile."""


async def start(start: Start) -> ServerProcess:
    """Start a server by a blocking call that returns when it is ready.

    A caller that is cancelled meanwhile gives the start up, waits for that, and ends what was started.
    """
    given_up = threading.Event()
    starting = asyncio.create_task(asyncio.to_thread(start, given_up.is_set))
    try:
        return ServerProcess(await asyncio.shield(starting))
    except asyncio.CancelledError:
        given_up.set()
        await asyncio.wait([starting])
        if not starting.cancelled() and starting.exception() is None:
            await asyncio.to_thread(starting.result().stop)
        raise
