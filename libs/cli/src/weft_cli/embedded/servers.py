"""NATS and Postgres as parts: each under a guard of its own, which `weft_servers` starts."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

_LOOK_S = 0.2
"""Between two looks whether a server still runs."""


class Server(Protocol):
    """What `weft_servers` starts."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def stop(self) -> int: ...


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A server under its guard."""

    server: Server

    @property
    def pid(self) -> int:
        return self.server.pid

    async def wait(self) -> int:
        while (status := self.server.poll()) is None:
            await asyncio.sleep(_LOOK_S)
        return status

    async def stop(self, grace_s: float) -> int:
        """End it; the guard has the grace time that it was started with, `grace_s` is not asked."""
        del grace_s
        return await asyncio.to_thread(self.server.stop)


async def start(start: Callable[[], Server]) -> ServerProcess:
    """Start a server by a blocking call that returns when it is ready.

    A caller that is cancelled meanwhile waits for it all the same, and then ends the server.
    """
    starting = asyncio.create_task(asyncio.to_thread(start))
    try:
        return ServerProcess(await asyncio.shield(starting))
    except asyncio.CancelledError:
        await asyncio.wait([starting])
        if not starting.cancelled() and starting.exception() is None:
            await asyncio.to_thread(starting.result().stop)
        raise
