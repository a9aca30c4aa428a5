"""What nodes say of their installs, loads and memory: read every second from the stream that keeps the last of each.

So a node that floods is read once a second like any other, and one that is unknown or says nonsense not at all.
"""

import asyncio
import time
from typing import Any

from pydantic import ValidationError
from weft_contracts.ids import NodeId
from weft_contracts.signals import PROGRESS_BYTES, NodeProgress
from weft_contracts.subjects import node_signal
from weft_eventlog import LastValue, LogUnavailable
from weft_runtime.logs import get_logger
from weft_runtime.service import Runtime

from weft_gateway.domain.progress_board import ProgressBoard
from weft_gateway.projections.directory import Directory

_POLL_S = 1.0
_AGAIN_S = 10.0
"""After a look without an answer; then the stream may be another one, too."""
_BEFORE, _BEHIND = node_signal(NodeId("*"), "progress").split("*")
_log: Any = get_logger("weft.gateway.progress")


class ProgressPoller:
    """Puts on the board what nodes of the fleet say."""

    def __init__(self, runtime: Runtime, directory: Directory, board: ProgressBoard) -> None:
        self._runtime = runtime
        self._directory = directory
        self._board = board
        self._signals = runtime.signals(node_signal(NodeId("*"), "progress"), "nodes' progress signals")
        self._connections: int | None = None

    async def run(self) -> None:
        """Look for ever."""
        while True:
            pause = _POLL_S
            if self._runtime.client.is_connected:
                if self._connections != self._runtime.connections:  # the server, and its stream, may be another one
                    self._connections = self._runtime.connections
                    self._signals.anew()
                try:
                    self.take(await self._signals.said(), time.monotonic())
                except LogUnavailable as error:
                    _log.debug("progress not read", error=str(error))
                    self._signals.anew()
                    pause = _AGAIN_S
            self._board.forget_old(time.monotonic())
            await asyncio.sleep(pause)

    def take(self, values: list[LastValue], now: float) -> None:
        """Put on the board what was read. The subject says whose it is: a node may write to no other's."""
        for value in values:
            node = self._directory.fleet.nodes.get(NodeId(value.subject.removeprefix(_BEFORE).removesuffix(_BEHIND)))
            if node is None or node.removed or len(value.data) > PROGRESS_BYTES:
                continue
            try:
                progress = NodeProgress.model_validate_json(value.data)
            except ValidationError as error:
                _log.debug("progress that can't be read", node=node.id, faults=error.error_count())
                continue
            self._board.heard(node.id, progress, now)
