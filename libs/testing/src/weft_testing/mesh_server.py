"""A real NATS server with the mesh's accounts, permissions and topology, for one test."""

import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from weft_contracts import permissions as catalogue
from weft_contracts.catalogue import Writer
from weft_contracts.ids import NodeId
from weft_eventlog import apply_topology
from weft_eventlog.one_socket import OneSocket
from weft_identity import trust
from weft_identity.mesh_exports import mesh_exports, observer_grants, service_credentials, worker_grants
from weft_identity.nkey import KeyPair, Role
from weft_servers import nats_server


class MeshServer:
    """A server and the mesh's trust. Clients are closed by `aclose`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.trust = trust.load_or_make(folder / "trust", mesh_exports())
        self.server = nats_server.start(folder / "nats", operator=self.trust.operator_mode())
        self._clients: list[Client] = []
        self.errors: list[str] = []
        """What the server told clients of this fixture through their error callbacks."""

    @property
    def url(self) -> str:
        return self.server.url

    def restart(self) -> None:
        """Stop the server and start it on the same folder and port."""
        self.server.stop()
        self.start_again()

    def start_again(self) -> None:
        """Start the server anew on its folder and port, after a stop or a kill."""
        conf = self.server.conf
        self.server = nats_server.start(
            self.folder / "nats",
            operator=self.trust.operator_mode(),
            client_port=conf.port,
            monitor_port=conf.monitor_port,
        )

    def credentials_file(self, service: Writer) -> Path:
        """A credentials file of a service, as processes take it."""
        path = self.folder / f"{service}.creds"
        path.write_text(service_credentials(self.trust, service).text())
        path.chmod(0o600)
        return path

    async def service(self, name: Writer, **options: Any) -> Client:
        """Connect as one of our services."""
        credentials = service_credentials(self.trust, name)
        return await self.connect(
            credentials.token, KeyPair.from_seed(credentials.seed), catalogue.service(name).inbox, options
        )

    async def worker(self, node: NodeId, key: KeyPair | None = None, **options: Any) -> Client:
        """Connect as a worker with a token for this node."""
        key = key or KeyPair.new(Role.USER)
        party = catalogue.worker(node)
        token = self.trust.worker_token(key.public, node, worker_grants(party))
        return await self.connect(token, key, party.inbox, options)

    def observer_file(self, name: str) -> Path:
        """A credentials file of somebody outside who may listen from a place of that name."""
        path = self.folder / f"{name}.creds"
        path.write_text(self._observer(name).text())
        return path

    async def observer(self, name: str) -> Client:
        """Connect as somebody outside who may listen from a place of that name."""
        made = self._observer(name)
        return await self.connect(made.token, KeyPair.from_seed(made.seed), catalogue.observer(name).inbox, {})

    def _observer(self, name: str) -> trust.Credentials:
        return self.trust.user(trust.Account.OBSERVERS, name, observer_grants(catalogue.observer(name)))

    async def root(self, **options: Any) -> Client:
        """Connect with every right inside MESH: for looking, and for what no service may do."""
        from weft_identity.grants import FULL

        credentials = self.trust.user(trust.Account.MESH, "root", FULL)
        return await self.connect(credentials.token, KeyPair.from_seed(credentials.seed), "_INBOX", options)

    async def close_clients(self) -> None:
        """Close every client."""
        for client in self._clients:
            await client.close()  # also one that was refused: its socket is still open
        self._clients.clear()

    async def aclose(self) -> None:
        """Close every client and stop the server."""
        await self.close_clients()
        self.server.stop()

    async def connect(self, token: str, key: KeyPair, inbox: str, options: dict[str, Any]) -> Client:
        """Connect with any token, and a key that need not be its own. `options` go to the client."""

        async def note(error: Exception) -> None:
            self.errors.append(str(error))

        settings: dict[str, Any] = {
            "servers": self.url,
            "user_jwt_cb": token.encode,
            "signature_cb": lambda nonce: base64.b64encode(key.sign(nonce.encode())),  # pyright: ignore
            "inbox_prefix": inbox.encode(),
            "error_cb": note,
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": 0.1,
            "connect_timeout": 30,
        }
        client = OneSocket()
        self._clients.append(client)
        await client.connect(**(settings | options))
        return client


@asynccontextmanager
async def running_mesh_server(folder: Path) -> AsyncGenerator[MeshServer]:
    """A MeshServer with the topology applied, stopped at the end."""
    server = MeshServer(folder)
    try:
        await apply_topology(await server.root())
        yield server
    finally:
        await server.aclose()
