"""A port between clients and a server: who comes is counted, may be cut off, or heard too late."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Between:
    """Passes on all that is said, to a port of this machine that may change."""

    def __init__(self, to: int) -> None:
        self.to = to
        """Where those who come next are led."""
        self.late = 0
        """So many of those who come next are heard only when the server has spoken."""
        self.came = 0
        self.port = 0
        self._ends: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """End every connection."""
        for end in self._ends:
            end.transport.abort()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One who comes."""
        self.came += 1
        late, self.late = self.late > 0, max(0, self.late - 1)
        beyond, onward = await asyncio.open_connection("127.0.0.1", self.to)
        ends = {writer, onward}
        self._ends |= ends
        try:
            if late:
                await _pass_on(beyond, writer, once=True)
            ways = (_pass_on(reader, onward), _pass_on(beyond, writer))
            await asyncio.wait([asyncio.create_task(way) for way in ways])
        finally:
            self._ends -= ends
            for end in ends:
                end.transport.abort()

    async def empty(self) -> None:
        """Return when nobody is there."""
        while self._ends:
            await asyncio.sleep(0.01)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, once: bool = False) -> None:
    """What one end says, to the other, until either ends."""
    with contextlib.suppress(OSError, RuntimeError):  # uvloop says so of an end that is closed
        while said := await reader.read(1 << 16):
            writer.write(said)
            await writer.drain()
            if once:
                return
    writer.transport.close()


@asynccontextmanager
async def between(to: int) -> AsyncGenerator[Between]:
    """On a port of its own; ends what still stands."""
    place = Between(to)
    server = await asyncio.start_server(place.take, "127.0.0.1")
    place.port = server.sockets[0].getsockname()[1]
    try:
        yield place
    finally:
        server.close()
        place.cut()
        await asyncio.wait_for(place.empty(), 30)
        await server.wait_closed()
