"""Leases as they come in: each is one call, nothing is kept but the time."""

import asyncio
import time
from typing import Any

from faststream.nats import NatsBroker, NatsMessage
from weft_contracts.ids import NodeId
from weft_contracts.subjects import service_lease
from weft_runtime.logs import get_logger

from weft_registry.domain.hearing import Hearing, Patience, Signs
from weft_registry.domain.state import RegistryState

_log: Any = get_logger("weft.registry.leases")
_BEAT = 1.0
"""Seconds between its own beats: so much later than it could be is a silence noticed."""


class LeaseListener:
    """Hears every lease of the mesh, and its own beat, which tells that it hears."""

    def __init__(self, broker: NatsBroker, state: RegistryState, patience: Patience, instance: str) -> None:
        self._broker = broker
        self._state = state
        self._beat = service_lease(f"registry.{instance}")
        self._hearing = Hearing.begin(time.monotonic(), patience)
        self._connected: str | None = None

        @broker.subscriber("weft.lease.node.*", decoder=_nothing, no_reply=True)
        async def on_node(message: NatsMessage) -> None:  # pyright: ignore[reportUnusedFunction]
            node = NodeId(message.raw_message.subject.rpartition(".")[2])  # pyright: ignore
            self._hearing.note(node, time.monotonic())

        @broker.subscriber(self._beat, decoder=_nothing, no_reply=True)
        async def on_own(_: NatsMessage) -> None:  # pyright: ignore[reportUnusedFunction]
            self._hearing.echo(time.monotonic())

    async def run(self) -> None:
        """Once a second: beat, remember who was healthy, and notice a new connection."""
        while True:
            now = time.monotonic()
            nodes = self._state.fleet.nodes.values()
            self._hearing.note_healthy([node.id for node in nodes if node.presence == "healthy"], now)
            connection = self._connection()
            if connection != self._connected:
                if self._connected is not None:
                    _log.info("silence counts anew", why="another connection, or none")
                    self._hearing.interrupted(now)
                self._connected = connection
            if connection:
                await self._broker.publish(b"", self._beat)
            await asyncio.sleep(_BEAT)

    def signs(self) -> Signs:
        """What was heard up to now."""
        fleet = self._state.fleet
        known = [node.id for node in fleet.nodes.values() if node.approved and not node.removed]
        return self._hearing.signs(known, time.monotonic(), braked=fleet.brake is not None)

    def _connection(self) -> str:
        """What tells this connection from an earlier one; empty while there is none."""
        client = self._broker._connection  # pyright: ignore
        if client is None or not client.is_connected:
            return ""
        return f"{client._server_info.get('server_id')} {client.stats['reconnects']}"  # pyright: ignore


async def _nothing(message: Any) -> bytes:
    """A lease's body says nothing that its subject doesn't: don't parse it."""
    return message.body
