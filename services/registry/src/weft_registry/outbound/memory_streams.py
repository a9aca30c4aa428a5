"""Streams in memory that a cluster has lost the leader of are made anew.

Two of three servers that end at once come back with nothing in their memory: the log elects a leader as soon as one is
back, and what lay in memory alone has none until all three are there. Nothing of it is truth: leases are renewed every
2 s, signals are said again.
"""

import asyncio
import random
from collections import Counter
from typing import Any

from weft_contracts.topology import LEASES, STREAMS, Stream
from weft_eventlog import LogUnavailable, apply_stream, leaderless, make_anew
from weft_runtime.leadership import Leadership
from weft_runtime.logs import get_logger
from weft_runtime.service import Runtime

LOOKS = 4
"""In succession without a leader: an election takes seconds."""
_PAUSE = 3.0
_MEMORY = tuple(stream for stream in STREAMS if stream.storage == "memory")
_log: Any = get_logger("weft.registry.memory")


class MemoryStreams:
    """Looks at each, where there are several servers, and remembers which it has thrown away."""

    def __init__(self, runtime: Runtime, leadership: Leadership) -> None:
        self._runtime = runtime
        self._leadership = leadership
        self._without = Counter[str]()
        self._pending: set[str] = set()
        """Those that may have been thrown away and not made again: they are made until that is answered."""

    async def run(self) -> None:
        """Look every few seconds, for ever. Not at the same time as other instances."""
        while True:
            await asyncio.sleep(_PAUSE * random.uniform(1.0, 1.5))
            await self.look()

    async def look(self) -> None:
        """Whether each has a server that leads it; else it is made anew, after some looks."""
        runtime, without = self._runtime, self._without
        if runtime.servers < 2 or not runtime.client.is_connected:
            without.clear()
            return
        for stream in _MEMORY:
            try:
                without[stream.name] = without[stream.name] + 1 if await leaderless(runtime.client, stream) else 0
                if without[stream.name] >= LOOKS:
                    await self._anew(stream)
                elif stream.name in self._pending and not without[stream.name]:
                    await apply_stream(runtime.client, stream, servers=runtime.servers)
                    self._pending.discard(stream.name)
            except LogUnavailable as error:
                _log.debug("not looked at", stream=stream.name, error=str(error))

    async def _anew(self, stream: Stream) -> None:
        """By whoever leads; the leases by anybody, for nobody leads without them. Another instance may have just done
        it, so it looks once more."""
        if stream is not LEASES and not self._leadership.held:
            return
        if await leaderless(self._runtime.client, stream):
            self._pending.add(stream.name)
            await make_anew(self._runtime.client, stream, servers=self._runtime.servers)
            self._pending.discard(stream.name)
            _log.warning("made anew: no server led it", stream=stream.name)
        self._without[stream.name] = 0
