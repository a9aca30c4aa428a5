"""The agent's stream to one engine host: its load, and by being open the sign that an agent is there.

A host without such a stream for a minute ends itself.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft_contracts.gen import session_pb2 as pb
from weft_contracts.ids import NodeId
from weft_runtime.logs import get_logger

SILENCE_S = 10.0
"""A host says something every second; an engine that loads may hold its process for a while."""
_AGAIN_S = 0.5
_log: Any = get_logger("weft.host_watch")


@dataclass(frozen=True, slots=True)
class Secured:
    """The node's certificate, which host and agent both show."""

    folder: Path
    node: NodeId


class HostWatch:
    """Watches one host until it is closed. `heard` gets every status, on the loop."""

    def __init__(
        self,
        target: str,
        incarnation: str,
        heard: Callable[[pb.HostStatus], None],
        *,
        secured: Secured | None = None,
    ) -> None:
        """`secured`: over TLS; None: plainly."""
        self._secured = secured
        self._target = target
        self._incarnation = incarnation
        self._heard = heard
        self._retiring = False
        self._task = self._watching()

    def retire(self) -> None:
        """Ask the host to take nothing new, finish what runs and end; asked again whenever the stream reopens."""
        if not self._retiring:
            self._retiring = True
            self._task.cancel()
            self._task = self._watching()

    def close(self) -> None:
        self._task.cancel()

    def _watching(self) -> asyncio.Task[None]:
        return asyncio.create_task(self._watch(), name=f"watch-{self._incarnation}")

    async def _watch(self) -> None:
        from weft_dataplane import SessionLost, watch_host  # with gRPC: a node without engines does without

        while True:
            try:
                credentials, names = self._tls()
                statuses = watch_host(
                    self._target,
                    self._incarnation,
                    retire=self._retiring,
                    silence_s=SILENCE_S,
                    credentials=credentials,
                    names=names,
                )
                async with aclosing(statuses):
                    async for status in statuses:
                        self._heard(status)
            except (SessionLost, OSError) as lost:
                _log.debug("watch broken", host=self._incarnation, why=str(lost))
            await asyncio.sleep(_AGAIN_S * random.uniform(0.5, 1.5))

    def _tls(self) -> tuple[Any, list[tuple[str, str]] | None]:
        """Made anew for each watch: a renewed certificate counts from then on. Raises OSError."""
        if self._secured is None:
            return None, None
        from weft_dataplane.tls import Certificates, names_node

        return Certificates(self._secured.folder).channel(), names_node(self._secured.node)
