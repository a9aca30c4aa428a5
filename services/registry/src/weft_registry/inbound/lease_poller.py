"""Whose leases were renewed: looked at twice a second, nothing is kept but the time."""

import asyncio
import time
from typing import Any

from weft_contracts.catalogue import SERVICES
from weft_contracts.ids import NodeId
from weft_contracts.subjects import node_lease, service_lease
from weft_eventlog import LogUnavailable
from weft_runtime.logs import get_logger
from weft_runtime.service import Runtime

from weft_registry.domain.failure_detector import FailureDetector, Observations, Timeouts
from weft_registry.domain.state import RegistryState

_log: Any = get_logger("weft.registry.leases")
_RENEWAL_S = 1.0
"""Seconds between renewals of its own lease: so much later than it could be is a silence noticed."""
_POLL_S = 0.5
_ECHO_LOST_S = 3.0
"""Seconds without its own lease, after which the stream is read from its start: it may be another one."""
_NODES = node_lease(NodeId(""))
_SERVICES = service_lease("")
_LIVING_S = 5.0
"""Since its lease was renewed a service counts as living: after that a standby takes over."""


class LeasePoller:
    """Reads every lease of the mesh for the failure detector, and its own, which tells that reading works."""

    def __init__(self, runtime: Runtime, state: RegistryState, timeouts: Timeouts) -> None:
        self._runtime = runtime
        self._state = state
        self._own = service_lease(f"registry.{runtime.instance}")
        self._detector = FailureDetector.begin(time.monotonic(), timeouts)
        self._leases = runtime.leases("weft.lease.>")
        self._connected: str | None = None
        self._own_renewed = 0.0
        self._echoed = 0.0
        self._services: dict[str, float] = {}
        """When each service's lease was renewed, by its name."""

    def living(self) -> list[str]:
        """The services whose lease was renewed of late."""
        return [name for name, at in self._services.items() if time.monotonic() - at < _LIVING_S]

    async def run(self) -> None:
        """Twice a second: look whose lease was renewed, remember who was healthy, and notice a new connection."""
        while True:
            now = time.monotonic()
            nodes = self._state.fleet.nodes.values()
            self._detector.note_healthy([node.id for node in nodes if node.presence == "healthy"], now)
            connection = self._connection()
            if connection != self._connected:
                if self._connected is not None:
                    _log.info("silence counts anew", why="another connection, or none")
                    self._detector.interrupted(now)
                self._connected = connection
                self._leases.anew()
            if connection:
                await self._poll(now)
            await asyncio.sleep(_POLL_S)

    async def _poll(self, now: float) -> None:
        """Read what was renewed. Its own lease stands behind what was renewed before it."""
        if now - self._own_renewed >= _RENEWAL_S:
            self._own_renewed = now
            await self._runtime.client.publish(self._own)
        if now - self._echoed >= _ECHO_LOST_S:
            self._echoed = now
            self._leases.anew()
        try:
            renewed = await self._leases.renewed()
        except LogUnavailable as error:
            _log.debug("leases not read", error=str(error))
            return
        now = time.monotonic()
        for subject in renewed:
            if subject.startswith(_NODES):
                self._detector.renew(NodeId(subject.removeprefix(_NODES)), now)
            elif subject == self._own:
                self._echoed = now
                self._detector.echo(now)
            elif (service := subject.removeprefix(_SERVICES)) in SERVICES:
                self._services[service] = now

    def silences(self) -> dict[NodeId, float]:
        """Seconds since the last sign of life of each node that is approved and gave one."""
        now = time.monotonic()
        known = (node for node in self._state.fleet.nodes.values() if node.approved and not node.removed)
        return {node.id: since for node in known if (since := self._detector.since(node.id, now)) is not None}

    def observations(self) -> Observations:
        """What is known of the nodes now."""
        fleet = self._state.fleet
        known = [node.id for node in fleet.nodes.values() if node.approved and not node.removed]
        return self._detector.observations(known, time.monotonic(), braked=fleet.brake is not None)

    def _connection(self) -> str:
        """What tells this connection from an earlier one; empty while there is none."""
        client = self._runtime.client
        if not client.is_connected:
            return ""
        return f"{client._server_info.get('server_id')} {client.stats['reconnects']}"  # pyright: ignore
