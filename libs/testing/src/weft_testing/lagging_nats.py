"""A way to a real NATS server that lags, as one of three may: it gives the log's first events, says that there are no
more, and gives the rest only when it has caught up. All else passes as it comes.
"""

import asyncio
import contextlib
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from weft_contracts.topology import EVENTS

_EVENT = f"$JS.ACK.{EVENTS.name}.".encode()
"""How the reply subject begins under which a consumer delivers an event: its consumer, its place and what is pending
follow."""
_WITH_BODY = {b"MSG": 4, b"HMSG": 5}
"""Words of a line that a body follows, without the reply subject."""


class LaggingNats:
    """A context: clients connect to `url`."""

    def __init__(self, server: str, gives: int) -> None:
        """`server`: the real one's URL; `gives`: the log's last sequence that it seems to have."""
        self._server = urlsplit(server)
        self._gives = gives
        self._caught_up = asyncio.Event()
        self._held_back = asyncio.Event()
        self._taken: set[asyncio.Task[None]] = set()
        self.url = ""

    async def __aenter__(self) -> Self:
        self._door = await asyncio.start_server(self._enter, "127.0.0.1", 0)
        host, port = self._door.sockets[0].getsockname()
        self.url = f"nats://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._door.close()
        for task in self._taken:
            task.cancel()
        await asyncio.gather(*self._taken, return_exceptions=True)

    def catch_up(self) -> None:
        """Give all that there is, from now on."""
        self._caught_up.set()

    async def held_back(self, timeout: float = 60.0) -> None:
        """Return once an event was held back. Raises TimeoutError."""
        await asyncio.wait_for(self._held_back.wait(), timeout)

    async def _enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, away = await asyncio.open_connection(self._server.hostname, self._server.port)
        task = asyncio.current_task()
        assert task is not None
        self._taken.add(task)
        ways = [asyncio.create_task(_pump(reader, away)), asyncio.create_task(self._deliver(there, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._taken.discard(task)
            away.close()
            writer.close()

    async def _deliver(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """What the server says, event by event."""
        held: list[bytes] = []
        deaf: set[bytes] = set()
        """Subscriptions of which an event is held back, so that all behind it is too."""
        lines = asyncio.create_task(there.readuntil(b"\r\n"))
        waited = asyncio.create_task(self._caught_up.wait())
        try:
            while True:
                await asyncio.wait({lines, waited} if held else {lines}, return_when=asyncio.FIRST_COMPLETED)
                if self._caught_up.is_set():
                    writer.writelines(held)
                    held.clear()
                    deaf.clear()
                if not lines.done():
                    continue
                line = lines.result()
                words = line.split()
                if (least := _WITH_BODY.get(words[0])) is not None:
                    body = await there.readexactly(int(words[-1]) + 2)
                    if not self._caught_up.is_set() and len(words) > least:
                        words[3] = self._seen_from_behind(words[3], words[2], deaf)
                        line = b" ".join(words) + b"\r\n"
                    line += body
                if words[0] in _WITH_BODY and words[2] in deaf:
                    held.append(line)
                    self._held_back.set()
                else:
                    writer.write(line)
                    await writer.drain()
                lines = asyncio.create_task(there.readuntil(b"\r\n"))
        finally:
            for task in (lines, waited):
                task.cancel()

    def _seen_from_behind(self, reply: bytes, subscription: bytes, deaf: set[bytes]) -> bytes:
        """An event's reply subject, with as many pending as this server seems to have."""
        if not reply.startswith(_EVENT):
            return reply
        tokens = reply.split(b".")
        if int(tokens[5]) > self._gives:
            deaf.add(subscription)
        return b".".join([*tokens[:8], b"%d" % max(0, self._gives - int(tokens[5]))])


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
