"""This gateway's demand on SIGNALS, every second: by it models get more and fewer replicas."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from weft_contracts.signals import DEMAND_EVERY_S, GatewayDemand, ModelDemand
from weft_contracts.subjects import gateway_signal
from weft_eventlog import LogUnavailable
from weft_eventlog.errors import unavailable
from weft_runtime.logs import get_logger

from weft_gateway.domain.told_demand import told_demand

_log: Any = get_logger("weft.gateway.demand")


class DemandSignal:
    """What can't be sent is dropped: the next one says more."""

    def __init__(self, client: Any, instance: str, demand: Callable[[], Sequence[ModelDemand]]) -> None:
        self._client = client
        self._subject = gateway_signal(instance, "demand")
        self._demand = demand
        self._left = False

    async def run(self) -> None:
        """Publish for ever."""
        while True:
            if not self._left and self._client.is_connected:
                await self._say(told_demand(self._demand()))
            await asyncio.sleep(DEMAND_EVERY_S)

    async def leave(self) -> None:
        """Say that nothing more is to be awaited, as the last thing."""
        self._left = True
        await self._say(GatewayDemand(leaving=True))

    async def _say(self, demand: GatewayDemand) -> None:
        try:
            with unavailable("the demand can't be said"):
                await self._client.publish(self._subject, demand.model_dump_json(exclude_defaults=True).encode())
        except LogUnavailable as error:
            _log.debug("demand not said", error=str(error))
