"""The pool of connections with replicas: one for each endpoint that this gateway uses, with the endpoint's state."""

import asyncio
from collections.abc import Callable, Sequence

from weft_contracts.ids import ModelId, NodeId, ReplicaId
from weft_dataplane.session_client import SessionClient
from weft_dataplane.tls import Certificates

from weft_gateway.domain.routing.endpoint import Endpoint
from weft_gateway.domain.routing.endpoint_state import EndpointState
from weft_gateway.outbound.endpoint_connection import EndpointConnection

IDLE_S = 300.0
"""A session that nobody used for so long is closed."""
_SWEEP_S = 5.0
_REMOVED_LOOK_S = 0.2
Endpoints = Callable[[ModelId], Sequence[Endpoint]]


class ConnectionPool:
    """States by model, connections by replica. `endpoints` names a model's ready runs; `version` counts its changes."""

    def __init__(
        self,
        gateway: str,
        endpoints: Endpoints,
        version: Callable[[], int],
        on_readmitted: Callable[[EndpointState], None],
        certificates: Certificates | None = None,
    ) -> None:
        """`on_readmitted`: told of each ejected endpoint that answers again. `certificates`: what is shown to replicas;
        None: the mesh speaks plainly."""
        self._certificates = certificates
        self._gateway = gateway
        self._endpoints = endpoints
        self._version = version
        self._on_readmitted = on_readmitted
        self._connections: dict[ReplicaId, EndpointConnection] = {}
        self._draining: list[EndpointConnection] = []
        self._states: dict[ModelId, tuple[int, list[EndpointConnection], list[EndpointState]]] = {}

    def endpoint_states(self, model: ModelId) -> list[EndpointState]:
        """The states of a model's endpoints, one for each ready run, with the load of their last frames."""
        version = self._version()
        cached = self._states.get(model)
        if cached is None or cached[0] != version:
            connections = [self._connection(endpoint) for endpoint in self._endpoints(model)]
            cached = self._states[model] = version, connections, [connection.state for connection in connections]
        for connection in cached[1]:
            connection.take_load()
        return cached[2]

    def session(self, state: EndpointState) -> SessionClient | None:
        """The endpoint's session if it is open."""
        connection = self._connections.get(state.endpoint.replica)
        return connection.session if connection is not None and connection.state is state else None

    async def open(self, state: EndpointState, timeout: float = 5.0) -> SessionClient:
        """The endpoint's session, opened if need be. Raises SessionError."""
        return await self._connection(state.endpoint).open(timeout)

    def eject(self, replica: str, why: str) -> None:
        """Stop using a replica that says that it takes nothing new, until a newer run of it is ready."""
        connection = self._connections.get(ReplicaId(replica))
        if connection is not None:
            connection.state.ejected = why

    @property
    def open_count(self) -> int:
        """Sessions that are open now."""
        return sum(connection.session is not None for connection in (*self._connections.values(), *self._draining))

    def states(self) -> list[EndpointState]:
        """The states of all endpoints that were asked, with the load of their last frames."""
        for connection in self._connections.values():
            connection.take_load()
        return [connection.state for connection in self._connections.values()]

    def state(self, replica: ReplicaId) -> EndpointState | None:
        """That of a replica that was asked."""
        connection = self._connections.get(replica)
        return connection.state if connection is not None else None

    def ejections(self) -> dict[ReplicaId, str | None]:
        """Why each known replica is ejected; None for those that are used."""
        return {replica: connection.state.ejected for replica, connection in self._connections.items()}

    async def sweep(self) -> None:
        """Close idle sessions and those of runs that are over, for ever."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            now = asyncio.get_running_loop().time()
            for connection in list(self._connections.values()):
                if not self._listed(connection.state):
                    self._drain(connection)
                elif (
                    connection.session and not connection.session.running and now - connection.state.last_used > IDLE_S
                ):
                    await connection.close("idle for five minutes")
            for connection in list(self._draining):
                if connection.session is None or not connection.session.running:
                    self._draining.remove(connection)
                    await connection.close("the replica is over")

    async def close_removed(self, removed: Callable[[NodeId], bool]) -> None:
        """Close the sessions with removed nodes as soon as the log says so, for ever: what runs there goes elsewhere.

        A removed node's certificate is good until it expires; nobody speaks to it any more.
        """
        seen = -1
        while True:
            if (version := self._version()) != seen:
                seen = version
                for connection in (*self._connections.values(), *self._draining):
                    if removed(connection.state.endpoint.node):
                        self._connections.pop(connection.state.endpoint.replica, None)
                        await connection.close("its node was removed")
            await asyncio.sleep(_REMOVED_LOOK_S)

    async def close(self) -> None:
        """Close every session."""
        connections = [*self._connections.values(), *self._draining]
        await asyncio.gather(
            *(connection.close("the gateway stops") for connection in connections), return_exceptions=True
        )

    def _connection(self, endpoint: Endpoint) -> EndpointConnection:
        connection = self._connections.get(endpoint.replica)
        if connection is not None:
            if connection.state.endpoint.event_id == endpoint.event_id:
                connection.state.endpoint = endpoint  # the node's address or health may have changed
                return connection
            self._drain(connection)
        connection = self._connections[endpoint.replica] = EndpointConnection(
            EndpointState(endpoint), self._gateway, self._listed, self._on_readmitted, self._certificates
        )
        return connection

    def _drain(self, connection: EndpointConnection) -> None:
        """A run that is over: its requests finish, nothing new goes there."""
        self._connections.pop(connection.state.endpoint.replica, None)
        self._draining.append(connection)

    def _listed(self, state: EndpointState) -> bool:
        return any(endpoint.event_id == state.endpoint.event_id for endpoint in self._endpoints(state.endpoint.model))
