"""Leases as they come in: each is one call, nothing is kept but the time."""

import asyncio
import time
from collections import deque
from typing import Any

from faststream.nats import NatsBroker, NatsMessage
from weft_contracts.ids import NodeId
from weft_contracts.subjects import service_lease
from weft_runtime.logs import get_logger

from weft_registry.domain.hearing import Hearing, Patience
from weft_registry.domain.liveness import Signs
from weft_registry.domain.state import RegistryState

_log: Any = get_logger("weft.registry.leases")
_MINUTE = 60.0


class LeaseListener:
    """Hears every lease of the mesh, and its own."""

    def __init__(self, broker: NatsBroker, state: RegistryState, patience: Patience) -> None:
        self._broker = broker
        self._state = state
        self._hearing = Hearing.begin(time.monotonic(), patience)
        self._patience = patience
        self._healthy: deque[tuple[float, frozenset[NodeId]]] = deque(maxlen=int(_MINUTE) + 1)
        self._server = ""

        @broker.subscriber("weft.lease.node.*", decoder=_nothing, no_reply=True)
        async def on_node(message: NatsMessage) -> None:  # pyright: ignore[reportUnusedFunction]
            node = NodeId(message.raw_message.subject.rpartition(".")[2])  # pyright: ignore
            self._hearing.note(node, time.monotonic())

        @broker.subscriber(service_lease("registry"), decoder=_nothing, no_reply=True)
        async def on_own(_: NatsMessage) -> None:  # pyright: ignore[reportUnusedFunction]
            self._hearing.echo(time.monotonic())

    async def run(self) -> None:
        """Once a second: remember who was healthy, and notice a new server."""
        while True:
            now = time.monotonic()
            nodes = self._state.fleet.nodes.values()
            self._healthy.append((now, frozenset(n.id for n in nodes if n.presence == "healthy")))
            server = self._server_id()
            if server != self._server:
                if self._server:
                    _log.info("silence counts anew", why="another server, or none")
                    self._hearing.interrupted(now)
                self._server = server
            await asyncio.sleep(1.0)

    def signs(self) -> Signs:
        """What was heard up to now."""
        now = time.monotonic()
        known = [n.id for n in self._state.fleet.nodes.values() if n.approved and not n.removed]
        silences = {id: s for id in known if (s := self._hearing.silence(id, now)) is not None}
        before = frozenset[NodeId]().union(*(ids for at, ids in self._healthy if now - at <= _MINUTE))
        return Signs(
            alive=frozenset(id for id in known if self._hearing.alive(id, now)),
            silence=silences,
            healthy_before=before,
        )

    def _server_id(self) -> str:
        client = self._broker._connection  # pyright: ignore
        if client is None or not client.is_connected:
            return "none"
        return str(client._server_info.get("server_id", ""))  # pyright: ignore


async def _nothing(message: Any) -> bytes:
    """A lease's body says nothing that its subject doesn't: don't parse it."""
    return message.body
