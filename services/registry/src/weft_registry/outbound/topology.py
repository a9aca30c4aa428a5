"""The registry applies the topology at its start, and again after each return of the server, accounts before it.

Memory streams are gone after a restart of the server, and workers can't make them.
"""

import asyncio
from typing import Any

from weft_eventlog import LogUnavailable, apply_topology
from weft_runtime.logs import get_logger
from weft_runtime.service import Runtime

from weft_registry.outbound.stream_limits import StreamLimits
from weft_registry.outbound.system_account import SystemAccount

_log: Any = get_logger("weft.registry.topology")
_PAUSE = 0.5


async def keep_topology(runtime: Runtime, system: SystemAccount | None, limits: StreamLimits) -> None:
    """Apply the topology whenever the connection is another one than last time, for ever. `system`: by it the accounts
    are brought to what the trust folder says; None: there is no trust."""
    applied = -1
    runtime.health.set_ready("topology", False)
    while True:
        connection = runtime.connections
        if runtime.client.is_connected and connection != applied:
            try:
                if system is not None and (renewed := await system.renew()):
                    _log.info("accounts renewed", accounts=renewed)
                await apply_topology(runtime.client, servers=runtime.servers)
                applied = connection
                limits.forget()
                runtime.health.set_ready("topology", True)
                _log.info("topology applied", servers=runtime.servers)
            except LogUnavailable as error:
                _log.warning("topology not applied", error=str(error))
        if connection == applied and runtime.client.is_connected:
            await limits.follow()
        await asyncio.sleep(_PAUSE)
