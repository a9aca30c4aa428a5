"""The registry applies the topology at its start, and again after each return of the server.

Memory streams are gone after a restart of the server, and workers can't make them.
"""

import asyncio
from typing import Any

from weft_eventlog import LogUnavailable, apply_topology
from weft_runtime.logs import get_logger
from weft_runtime.service import Runtime

_log: Any = get_logger("weft.registry.topology")
_PAUSE = 0.5


async def keep_topology(runtime: Runtime) -> None:
    """Apply the topology whenever the connection is another one than last time, for ever."""
    applied = -1
    runtime.health.set_ready("topology", False)
    while True:
        connection = runtime.connections
        if runtime.client.is_connected and connection != applied:
            try:
                await apply_topology(runtime.client, servers=runtime.servers)
                applied = connection
                runtime.health.set_ready("topology", True)
                _log.info("topology applied", servers=runtime.servers)
            except LogUnavailable as error:
                _log.warning("topology not applied", error=str(error))
        await asyncio.sleep(_PAUSE)
