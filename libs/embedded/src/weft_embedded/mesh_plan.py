"""The plan of an embedded mesh: each of its processes with settings and log, and the order in which they end."""

import asyncio
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass

from weft_contracts import certificates
from weft_contracts.api_key import first_key
from weft_contracts.ids import token_hash, token_id
from weft_identity.operator_mode import OperatorMode
from weft_servers import nats_server, postgres_server
from weft_servers.nats_conf import Listen
from weft_servers.port import LOOPBACK

from weft_embedded import readiness, server_process, service_process
from weft_embedded.external_servers import ExternalServers
from weft_embedded.listen_address import ListenAddress
from weft_embedded.ports import Ports
from weft_embedded.service_process import Command, Process
from weft_embedded.state import State
from weft_embedded.supervisor import Part

SERVICES: dict[str, str] = {
    "registry": "weft_registry",
    "gateway": "weft_gateway",
    "scheduler": "weft_scheduler",
    "reconciler": "weft_reconciler",
    "metadata-cache": "weft_metadata_cache",
}
"""Python module by service, in the order of their start: what others wait for comes first."""
_LOOKS_AT_DISK = ("registry", "gateway")
"""The one sets the log's limits by what is free, the other tells people of a full disk."""
BY_GATEWAY = "{gateway}"
"""In the address of NATS that workers get: the host by which each reaches the gateway."""
WORKER_MODULE = "weft_worker_agent"
AGENT_ANEW = signal.SIGUSR1
"""At it a worker's supervisor starts its agent anew; the engine hosts go on."""
_GRACE_S = {"gateway": 20.0, "worker": 25.0, "service": 15.0}
"""From the stop signal to the end by force: above what each allows itself."""
_SERVER_GRACE_S = 10.0
STOP_BOUND_S = sum(_GRACE_S.values()) + _SERVER_GRACE_S + server_process.SUPERVISOR_S
"""What the parts are allowed together, one group after the other."""


def worker_names(count: int) -> tuple[str, ...]:
    """Names of the launcher's own workers, which are also their nodes' names."""
    return tuple(f"worker-{number}" for number in range(1, count + 1))


def port_names(workers: int) -> tuple[str, ...]:
    """All that needs a port besides the gateway."""
    services = tuple(name for name in SERVICES if name != "gateway")
    return ("nats", "nats-monitor", *services, *worker_names(workers))


@dataclass(frozen=True, slots=True)
class MeshPlan:
    """What one state's mesh consists of: makes its parts."""

    state: State
    ports: Ports
    workers: int
    join_secret: str
    admin_key: str
    """This state's own: the gateway is told its hash."""
    address: ListenAddress
    external: ExternalServers
    lock_fd: int
    """The state's lock, which every process inherits: it is free when the last of them has ended."""

    @property
    def url(self) -> str:
        """Where the gateway answers this machine."""
        return self.address.url(self.ports["gateway"])

    @property
    def nats_url(self) -> str:
        """Where this machine's services address NATS."""
        if self.external.nats is not None:
            return self.external.nats
        return self._nats_listens.url(self.ports["nats"])

    @property
    def _nats_listens(self) -> Listen:
        return Listen(self.address.listen, self.state.certificate(certificates.NATS) if self.address.tls else None)

    def nats(self, operator: OperatorMode, started: Callable[[Callable[[], bool]], None]) -> Part:
        """`started` is told at every start how to ask the server whether a write to its disk failed."""

        def start(given_up: Callable[[], bool]) -> server_process.Server:
            server = nats_server.start(
                self.state.nats,
                operator=operator,
                client_port=self.ports["nats"],
                monitor_port=self.ports["nats-monitor"],
                listen=self._nats_listens,
                grace_s=_SERVER_GRACE_S,
                given_up=given_up,
            )
            started(server.fails_at_writes)
            return server

        log = self.state.nats / "nats.log"
        return Part("nats", lambda: server_process.start(start), _already, log, self.ports["nats"], _SERVER_GRACE_S)

    def postgres(self, started: Callable[[str], None]) -> Part:
        """`started` is told the database's URL at every start; it stays the same."""

        def start(given_up: Callable[[], bool]) -> server_process.Server:
            server = postgres_server.start(self.state.postgres, grace_s=_SERVER_GRACE_S, given_up=given_up)
            started(server.url)
            return server

        log = self.state.postgres / "postgres.log"
        return Part("postgres", lambda: server_process.start(start), _already, log, None, _SERVER_GRACE_S)

    def service(self, name: str, **settings: str) -> Part:
        """One of the services; further settings as environment variables."""
        if name == "registry":
            settings |= {
                "WEFT_TRUST": str(self.state.trust),
                "WEFT_BOOTSTRAP_TOKEN_ID": token_id(self.join_secret),
                "WEFT_BOOTSTRAP_TOKEN_HASH": token_hash(self.join_secret),
            }
            if self.external.nats is not None:
                settings["WEFT_WORKER_NATS_URL"] = self.external.nats
            elif not self.address.loopback:
                scheme = "tls" if self.address.tls else "nats"
                settings["WEFT_WORKER_NATS_URL"] = f"{scheme}://{BY_GATEWAY}:{self.ports['nats']}"
        if name == "gateway":
            settings |= {"WEFT_FIRST_KEY": first_key(self.admin_key), "WEFT_HTTP_HOST": self.address.listen}
            if self.address.tls and self.address.certificate is not None and self.address.key is not None:
                settings |= {"WEFT_HTTP_CERTIFICATE": self.address.certificate, "WEFT_HTTP_KEY": self.address.key}
            if self.address.tls and not self.address.loopback:
                settings["WEFT_INSTALL_FOLDER"] = str(self.state.install)
        if name in _LOOKS_AT_DISK and self.external.nats is None:
            settings["WEFT_NATS_STORE"] = str(self.state.nats)
        if self.address.tls:
            settings["WEFT_TLS_FOLDER"] = str(self.state.certificate(name))
        folder = self.state.service(name)
        return self._process(
            name,
            SERVICES[name],
            _GRACE_S["gateway" if name == "gateway" else "service"],
            WEFT_NATS_URL=self.nats_url,
            WEFT_NATS_CREDENTIALS=str(self.state.credentials(name)),
            WEFT_STATE=str(folder),
            **settings,
        )

    def worker(self, number: int, authority: str | None) -> Part:
        """One of the launcher's own workers: each reports its share of the machine. `authority`: its digest."""
        token = self.join_secret if authority is None else certificates.pinned_token(self.join_secret, authority)
        return self._process(
            f"worker-{number}",
            WORKER_MODULE,
            _GRACE_S["worker"],
            WEFT_GATEWAY_URL=self.url,
            WEFT_NODE_NAME=f"worker-{number}",
            WEFT_STATE=str(self.state.worker(number)),
            WEFT_SHARE=f"1/{self.workers}",
            join_token=token,
            WEFT_DRAIN_TIMEOUT="0",  # stopping all of the mesh is no drain
        )

    def _process(self, name: str, module: str, grace_s: float, join_token: str = "", **settings: str) -> Part:
        port = self.ports[name]
        command = Command(
            argv=(sys.executable, "-m", module),
            env=service_process.environment(
                **{"WEFT_HTTP_HOST": LOOPBACK, "WEFT_HTTP_PORT": str(port), "WEFT_LOG_FORMAT": "json"} | settings
            ),
            log=self.state.log(name),
            keep_fds=(self.lock_fd,),
            join_token=join_token,
        )

        async def start() -> Process:
            return await service_process.start(command)

        endpoint = readiness.Endpoint(LOOPBACK, port)
        if name == "gateway" or name.startswith("worker-"):
            host = self.address.here if name == "gateway" else LOOPBACK
            authority = self.state.trust / certificates.AUTHORITY if self.address.tls else None
            endpoint = readiness.Endpoint(host, port, authority)
        return Part(name, start, lambda: readiness.problem(endpoint), command.log, port, grace_s)


def stop_order(names: list[str]) -> list[list[str]]:
    """Who ends together, one group after the other: requests first, then runs, then what records their end."""
    gateway = [name for name in names if name == "gateway"]
    workers = [name for name in names if name.startswith("worker-")]
    services = [name for name in names if name in SERVICES and name != "gateway"]
    last = [name for name in names if name not in {*gateway, *workers, *services}]
    return [group for group in (gateway, workers, services, last) if group]


async def _already() -> str | None:
    """A server's start returns only when it is ready."""
    await asyncio.sleep(0)
    return None
