"""The streams' limits follow the room of the log's servers, so that a log without room refuses new commits by name, and
doesn't fail at a write.

Where the servers' disk is this machine's, it is looked at: others fill it, too. Else its size is said. Where neither is
so, nothing of Weft's knows when the log is full.
"""

import shutil
from typing import Any

from weft_contracts import disk
from weft_eventlog import LogUnavailable, follow_disk, follow_size
from weft_runtime.logs import get_logger
from weft_runtime.service import Runtime

_log: Any = get_logger("weft.registry.stream_limits")


class StreamLimits:
    """Set once for each connection, and again when the room has halved or doubled."""

    def __init__(self, runtime: Runtime, size: int | None) -> None:
        """`size`: of each server's store, in bytes; None: it is not said."""
        self._runtime = runtime
        self._store = runtime.settings.nats_store
        self._size = size
        self._set_for: int | None = None
        self._failed: str | None = None
        if self._store is None and size is None:
            _log.warning(
                "the log has no limit: nothing warns before its servers' disks are full",
                remedy="set WEFT_NATS_STORE_SIZE, or WEFT_NATS_STORE where that disk is this machine's",
            )

    def forget(self) -> None:
        """The streams may be others than before."""
        self._set_for = None

    async def follow(self) -> None:
        """Set the limits if they are for another room. What fails is tried again at the next call, and told once."""
        try:
            if self._store is not None:
                free = shutil.disk_usage(self._store).free
                if (room := disk.room(free)) != self._set_for:
                    await follow_disk(self._runtime.client, free)
                    self._noted(room, free=free)
            elif self._size is not None and self._size != self._set_for:
                await follow_size(self._runtime.client, self._size)
                self._noted(self._size, size=self._size)
        except (OSError, LogUnavailable) as error:
            if self._failed != str(error):
                self._failed = str(error)
                _log.warning("the streams' limits not set", error=self._failed)

    def _noted(self, room: int, **by: int) -> None:
        self._set_for, self._failed = room, None
        _log.info("the streams' limits set", room=room, **by)
