"""What others say on SIGNALS: read every second from the stream that keeps the last of each.

So who floods is read once a second like any other, and who says nonsense not at all.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from weft_contracts.ids import NodeId
from weft_contracts.signals import DEMAND_BYTES, PROGRESS_BYTES, GatewayDemand, NodeProgress
from weft_contracts.subjects import gateway_signal, node_signal
from weft_eventlog import LastValue, LogUnavailable

from weft_runtime.logs import get_logger
from weft_runtime.service import Runtime

EVERY_S: Final = 1.0
Said = TypeVar("Said", bound=BaseModel)
_log: Any = get_logger("weft.signals")


@dataclass(frozen=True, slots=True)
class SignalKind(Generic[Said]):
    """One sort of signal, and how much of it is read."""

    subject: str
    """With one `*`, in the place of whose it is."""
    called: str
    """As people call it."""
    read_as: type[Said]
    most_bytes: int


DEMAND: Final = SignalKind(gateway_signal("*", "demand"), "gateways' demand signals", GatewayDemand, DEMAND_BYTES)
PROGRESS: Final = SignalKind(
    node_signal(NodeId("*"), "progress"), "nodes' progress signals", NodeProgress, PROGRESS_BYTES
)


class SignalPoller(Generic[Said]):
    """Hands on what is said: whose it is, what, and when, on the listener's own clock. Then has it looked at, whether
    anything could be read or not: what was said ages."""

    def __init__(
        self,
        runtime: Runtime,
        kind: SignalKind[Said],
        heard: Callable[[str, Said, float], None],
        look: Callable[[float], None],
    ) -> None:
        self._runtime = runtime
        self._kind = kind
        self._heard = heard
        self._look = look
        self._before, self._behind = kind.subject.split("*")
        self._signals = runtime.signals(kind.subject, kind.called)
        self._connections: int | None = None

    async def run(self) -> None:
        """Look for ever."""
        while True:
            if self._runtime.client.is_connected:
                await self.read()
            self._look(time.monotonic())
            await asyncio.sleep(EVERY_S)

    async def read(self) -> None:
        """Take what was said since the last time."""
        if self._connections != self._runtime.connections:  # the server, and its stream, may be another one
            self._connections = self._runtime.connections
            self._signals.anew()
        try:
            self.take(await self._signals.said(), time.monotonic())
        except LogUnavailable as error:
            _log.debug("signals not read", of=self._kind.called, error=str(error))
            self._signals.anew()

    def take(self, values: Sequence[LastValue], now: float) -> None:
        """Hand on what was read. The subject says whose it is: nobody may write to another's."""
        for value in values:
            whose = value.subject.removeprefix(self._before).removesuffix(self._behind)
            if len(value.data) > self._kind.most_bytes:
                continue
            try:
                said = self._kind.read_as.model_validate_json(value.data)
            except ValidationError as error:
                _log.debug("signal that can't be read", of=self._kind.called, whose=whose, faults=error.error_count())
                continue
            self._heard(whose, said, now)
