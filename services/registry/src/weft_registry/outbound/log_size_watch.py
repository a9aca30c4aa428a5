"""The log's size as NATS says it, asked every 10 s."""

import asyncio
from typing import Any

from weft_eventlog import LogSize, LogUnavailable
from weft_runtime.logs import get_logger
from weft_runtime.service import Runtime

_EVERY_S = 10.0
_log: Any = get_logger("weft.registry.log_size")


class LogSizeWatch:
    """Run `run` as a root task."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.now: LogSize | None = None
        """As it was last seen; None: NATS is away, or was never asked."""

    async def run(self) -> None:
        """Look for ever."""
        while True:
            try:
                self.now = await self._runtime.log.size() if self._runtime.client.is_connected else None
            except LogUnavailable as error:
                self.now = None
                _log.debug("the log's size is not known", error=str(error))
            await asyncio.sleep(_EVERY_S)
