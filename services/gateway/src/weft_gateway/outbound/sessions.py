"""One session for each replica that this gateway uses: a lane and a wire per ready run."""

import asyncio
from collections.abc import Callable, Sequence

from weft_contracts.ids import ModelId, NodeId, ReplicaId
from weft_dataplane.session_client import SessionClient
from weft_dataplane.tls import Certificates

from weft_gateway.domain.routing.lane import Lane
from weft_gateway.domain.target import Target
from weft_gateway.outbound.wire import Wire

IDLE_S = 300.0
"""A session that nobody used for so long is closed."""
_SWEEP_S = 5.0
_SHUT_OUT_S = 0.2
Targets = Callable[[ModelId], Sequence[Target]]


class Sessions:
    """Lanes by model, wires by replica. `targets` names a model's ready runs; `version` counts its changes."""

    def __init__(
        self,
        gateway: str,
        targets: Targets,
        version: Callable[[], int],
        regained: Callable[[Lane], None],
        certificates: Certificates | None = None,
    ) -> None:
        """`certificates`: what is shown to replicas; None: the mesh speaks plainly."""
        self._certificates = certificates
        self._gateway = gateway
        self._targets = targets
        self._version = version
        self._regained = regained
        self._wires: dict[ReplicaId, Wire] = {}
        self._leaving: list[Wire] = []
        self._lanes: dict[ModelId, tuple[int, list[Wire], list[Lane]]] = {}

    def lanes(self, model: ModelId) -> list[Lane]:
        """A model's lanes, one for each ready run, with the load of their last frames."""
        version = self._version()
        cached = self._lanes.get(model)
        if cached is None or cached[0] != version:
            wires = [self._wire(target) for target in self._targets(model)]
            cached = self._lanes[model] = version, wires, [wire.lane for wire in wires]
        for wire in cached[1]:
            wire.take_load()
        return cached[2]

    def session(self, lane: Lane) -> SessionClient | None:
        """The lane's session if it is open."""
        wire = self._wires.get(lane.target.replica)
        return wire.session if wire is not None and wire.lane is lane else None

    async def open(self, lane: Lane, timeout: float = 5.0) -> SessionClient:
        """The lane's session, opened if need be. Raises SessionError."""
        return await self._wire(lane.target).open(timeout)

    def shun(self, replica: str, why: str) -> None:
        """Stop using a replica that says that it takes nothing new, until a newer run of it is ready."""
        wire = self._wires.get(ReplicaId(replica))
        if wire is not None:
            wire.lane.shunned = why

    def regained(self, lane: Lane) -> None:
        """See wire.Watcher."""
        self._regained(lane)

    @property
    def open_count(self) -> int:
        """Sessions that are open now."""
        return sum(wire.session is not None for wire in (*self._wires.values(), *self._leaving))

    def states(self) -> dict[ReplicaId, str | None]:
        """Why each known replica is shunned; None for those that are used."""
        return {replica: wire.lane.shunned for replica, wire in self._wires.items()}

    async def sweep(self) -> None:
        """Close idle sessions and those of runs that are over, for ever."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            now = asyncio.get_running_loop().time()
            for wire in list(self._wires.values()):
                if not self._listed(wire.lane):
                    self._leave(wire)
                elif wire.session and not wire.session.running and now - wire.lane.last_used > IDLE_S:
                    await wire.close("idle for five minutes")
            for wire in list(self._leaving):
                if wire.session is None or not wire.session.running:
                    self._leaving.remove(wire)
                    await wire.close("the replica is over")

    async def shut_out(self, removed: Callable[[NodeId], bool]) -> None:
        """Close the sessions with removed nodes as soon as the log says so, for ever: what runs there goes elsewhere.

        A removed node's certificate is good until it expires; nobody speaks to it any more.
        """
        seen = -1
        while True:
            if (version := self._version()) != seen:
                seen = version
                for wire in (*self._wires.values(), *self._leaving):
                    if removed(wire.lane.target.node):
                        self._wires.pop(wire.lane.target.replica, None)
                        await wire.close("its node was removed")
            await asyncio.sleep(_SHUT_OUT_S)

    async def close(self) -> None:
        """Close every session."""
        wires = [*self._wires.values(), *self._leaving]
        await asyncio.gather(*(wire.close("the gateway stops") for wire in wires), return_exceptions=True)

    def _wire(self, target: Target) -> Wire:
        wire = self._wires.get(target.replica)
        if wire is not None:
            if wire.lane.target.event_id == target.event_id:
                wire.lane.target = target  # the node's address or health may have changed
                return wire
            self._leave(wire)
        wire = self._wires[target.replica] = Wire(Lane(target), self._gateway, self._listed, self, self._certificates)
        return wire

    def _leave(self, wire: Wire) -> None:
        """A run that is over: its requests finish, nothing new goes there."""
        self._wires.pop(wire.lane.target.replica, None)
        self._leaving.append(wire)

    def _listed(self, lane: Lane) -> bool:
        return any(target.event_id == lane.target.event_id for target in self._targets(lane.target.model))
