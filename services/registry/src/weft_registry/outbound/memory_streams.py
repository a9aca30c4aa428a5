"""Streams in memory that a cluster has lost the leader of are made anew.

Two of three servers that end at once come back with nothing in their memory: the log elects a leader as soon as one is
back, and what lay in memory alone has none until all three are there. Nothing of it is truth: leases are renewed every
2 s, signals are said again.
"""

import asyncio
from collections import Counter
from typing import Any

from weft_contracts.topology import STREAMS
from weft_eventlog import LogUnavailable, leaderless, make_anew
from weft_runtime.logs import get_logger
from weft_runtime.service import Runtime

LOOKS = 4
"""In succession without a leader: an election takes seconds."""
_PAUSE = 3.0
_MEMORY = tuple(stream for stream in STREAMS if stream.storage == "memory")
_log: Any = get_logger("weft.registry.memory")


async def keep_memory_streams(runtime: Runtime) -> None:
    """Look every few seconds whether each has a server that leads it, where there are several of them, for ever."""
    without = Counter[str]()
    while True:
        await asyncio.sleep(_PAUSE)
        if runtime.servers < 2 or not runtime.client.is_connected:
            without.clear()
            continue
        for stream in _MEMORY:
            try:
                without[stream.name] = without[stream.name] + 1 if await leaderless(runtime.client, stream) else 0
                if without[stream.name] >= LOOKS:
                    await make_anew(runtime.client, stream, servers=runtime.servers)
                    _log.warning("made anew: no server led it", stream=stream.name)
                    without[stream.name] = 0
            except LogUnavailable as error:
                _log.debug("not looked at", stream=stream.name, error=str(error))
