"""Which services are connected and what they read, asked of the NATS servers when an upgrade is to be finished.

Every instance has one connection, whose name says what it reads: standbys and gateways too, which hold no lease.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Any

from weft_contracts.catalogue import SERVICES
from weft_contracts.facts.request import UpgradeFinishRequested
from weft_contracts.formats import reader
from weft_eventlog import LogUnavailable
from weft_runtime.leadership import Leadership
from weft_runtime.logs import get_logger

from weft_registry.domain.state import RegistryState
from weft_registry.domain.upgrade import NOT_ASKED, ServicesHeard
from weft_registry.outbound.system_account import SystemAccount

_log: Any = get_logger("weft.registry.services")
_LOOK_S = 0.5


class ServicePoller:
    """Asks while this instance leads and somebody waits for the answer. Without trust there is nobody to ask."""

    def __init__(
        self,
        state: RegistryState,
        leadership: Leadership,
        system: SystemAccount | None,
        living: Callable[[], Collection[str]],
    ) -> None:
        """`living`: the services whose lease was renewed of late."""
        self._state = state
        self._leadership = leadership
        self._system = system
        self._living = living
        self.heard: ServicesHeard = NOT_ASKED

    async def run(self) -> None:
        """Look twice a second whether somebody waits, for ever."""
        while True:
            if self._leadership.held and self._awaited():
                try:
                    self.heard = await self._ask()
                except LogUnavailable as error:
                    _log.warning("the connected services are not known", error=str(error))
            await asyncio.sleep(_LOOK_S)

    def _awaited(self) -> bool:
        return any(
            isinstance(pending.asked, UpgradeFinishRequested) and pending.sequence > self.heard.position
            for pending in self._state.requests.waiting.values()
        )

    async def _ask(self) -> ServicesHeard:
        position = self._state.fleet.position
        if self._system is None:
            why = "the registry has no trust folder (WEFT_TRUST), so the servers don't tell it who is connected"
            return ServicesHeard(position, fault=why)
        living, account = self._living(), await self._system.services()
        if account.unheard:
            return ServicesHeard(position, unheard=account.unheard)
        names = [str(one.get("name", "")) for _, one in account.connections]
        reading = tuple(found for name in names if (found := reader(name, SERVICES)) is not None)
        if all(service != "registry" for service, _ in reading):
            why = "the NATS servers don't tell of this registry itself, so they may leave others out: try again"
            return ServicesHeard(position, fault=why)
        return ServicesHeard(position, reading, living=tuple(sorted(living)))
