"""Leases as they come in: each is one call, nothing is kept but the time."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from weft_contracts.commit import Recorded
from weft_contracts.ids import NodeId
from weft_contracts.subjects import service_lease
from weft_runtime.logs import get_logger
from weft_runtime.service import Runtime

from weft_registry.domain.hearing import Hearing, Patience, Signs
from weft_registry.domain.noise import WINDOW_S, Noise
from weft_registry.domain.state import RegistryState

_log: Any = get_logger("weft.registry.leases")
_BEAT = 1.0
"""Seconds between its own beats: so much later than it could be is a silence noticed."""


class LeaseListener:
    """Hears every lease of the mesh, and its own beat, which tells that it hears."""

    def __init__(self, runtime: Runtime, state: RegistryState, patience: Patience) -> None:
        self._runtime = runtime
        self._state = state
        self._beat = service_lease(f"registry.{runtime.instance}")
        self._hearing = Hearing.begin(time.monotonic(), patience)
        self._noise = Noise()
        self._connected: str | None = None

    async def listen(self) -> None:
        """Begin to hear: the nodes, and its own beat."""
        await self._runtime.hear("weft.lease.node.*", self._on_node)
        await self._runtime.hear(self._beat, self._on_own)

    def _on_node(self, subject: str) -> None:
        node = NodeId(subject.rpartition(".")[2])
        self._hearing.note(node, time.monotonic())
        self._noise.lease(node)

    def _on_own(self, _: str) -> None:
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
            self._tell_floods(now)
            if connection:
                await self._runtime.client.publish(self._beat)
            await asyncio.sleep(_BEAT)

    def folded(self, commits: Sequence[Recorded]) -> None:
        """Count what nodes have written lately; a log that is folded anew is no flood."""
        since = time.time() - WINDOW_S
        for commit in commits:
            if commit.aggregate.kind in ("run", "machine") and commit.at > since:
                self._noise.facts(NodeId(commit.aggregate.key.partition(".")[0]), max(1, len(commit.facts)))

    def _tell_floods(self, now: float) -> None:
        if not self._noise.turn(now):
            return
        nodes = self._state.fleet.nodes
        told = [f"{nodes[id].name if id in nodes else id} sends {what}" for id, what in self._noise.loud.items()]
        self._runtime.health.set("floods", f"{'; '.join(told)}: look at it, or remove it" if told else None)
        for each in told:
            _log.warning("a node floods", what=each)

    def signs(self) -> Signs:
        """What was heard up to now."""
        fleet = self._state.fleet
        known = [node.id for node in fleet.nodes.values() if node.approved and not node.removed]
        return self._hearing.signs(known, time.monotonic(), braked=fleet.brake is not None)

    def _connection(self) -> str:
        """What tells this connection from an earlier one; empty while there is none."""
        client = self._runtime.client
        if not client.is_connected:
            return ""
        return f"{client._server_info.get('server_id')} {client.stats['reconnects']}"  # pyright: ignore
