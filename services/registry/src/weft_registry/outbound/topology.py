"""The registry applies the topology at its start, and again after each return of the server, accounts before it.

Memory streams are gone after a restart of the server, and workers can't make them. Where the server's disk is this
machine's, the streams' limits follow what is free on it: then a disk that others fill makes the log refuse new commits
while it can still say so, and not fail at a write.
"""

import asyncio
import shutil
from pathlib import Path
from typing import Any

from weft_contracts import disk
from weft_eventlog import LogUnavailable, apply_topology, follow_disk
from weft_runtime.logs import get_logger
from weft_runtime.service import Runtime

from weft_registry.outbound.system_account import SystemAccount

_log: Any = get_logger("weft.registry.topology")
_PAUSE = 0.5


async def keep_topology(runtime: Runtime, system: SystemAccount | None = None) -> None:
    """Apply the topology whenever the connection is another one than last time, for ever. `system`: by it the accounts
    are brought to what the trust folder says; None: there is no trust."""
    applied, room = -1, -1
    store = runtime.settings.nats_store
    runtime.health.set_ready("topology", False)
    while True:
        connection = runtime.connections
        if runtime.client.is_connected and connection != applied:
            try:
                if system is not None and (renewed := await system.renew()):
                    _log.info("accounts renewed", accounts=renewed)
                await apply_topology(runtime.client, servers=runtime.servers)
                applied, room = connection, -1
                runtime.health.set_ready("topology", True)
                _log.info("topology applied", servers=runtime.servers)
            except LogUnavailable as error:
                _log.warning("topology not applied", error=str(error))
        if store is not None and connection == applied and runtime.client.is_connected:
            room = await _follow(runtime, store, room)
        await asyncio.sleep(_PAUSE)


async def _follow(runtime: Runtime, store: Path, before: int) -> int:
    """Set the streams' limits if there is another room than before; the room that they were set for."""
    try:
        free = shutil.disk_usage(store).free
        room = disk.room(free)
        if room == before:
            return before
        await follow_disk(runtime.client, free)
    except (OSError, LogUnavailable) as error:
        _log.warning("limits not set by the disk", store=str(store), error=str(error))
        return before
    _log.info("limits set by the disk", free=free, room=room)
    return room
