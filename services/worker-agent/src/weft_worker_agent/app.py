"""The agent's life: find the hosts that run, join, follow the log, and at the end stop all in order."""

import asyncio
import secrets
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from weft_contracts.facts.node import FilesWanted
from weft_contracts.facts.values import ModelSpec
from weft_contracts.subjects import worker_filters
from weft_runtime import logs, web
from weft_runtime.health import Health

from weft_worker_agent.inbound.backends_loop import BackendsLoop
from weft_worker_agent.inbound.claim_loop import watch_claims
from weft_worker_agent.inbound.disk_loop import watch_disks
from weft_worker_agent.inbound.files import listening
from weft_worker_agent.inbound.files_loop import FilesLoop
from weft_worker_agent.inbound.log_connection import LogConnection
from weft_worker_agent.inbound.machine_loop import MachineWatch
from weft_worker_agent.inbound.node_routes import node_routes
from weft_worker_agent.inbound.node_server import caller_roles, node_server
from weft_worker_agent.inbound.own_drain import OwnDrain
from weft_worker_agent.inbound.own_engines import OwnEngines
from weft_worker_agent.inbound.own_metrics import show_metrics
from weft_worker_agent.inbound.own_starts import own_starts
from weft_worker_agent.inbound.pressure_loop import PressureWatch
from weft_worker_agent.inbound.progress_loop import ProgressWatch
from weft_worker_agent.inbound.secrets_loop import SecretsLoop
from weft_worker_agent.inbound.steering_loop import SteeringLoop, follow_supervisor
from weft_worker_agent.inbound.stopping import Stopping
from weft_worker_agent.inbound.store_loop import used, watch_store
from weft_worker_agent.inbound.storing_loop import StoringLoop
from weft_worker_agent.inbound.wake import Wake
from weft_worker_agent.outbound.files.begun_ahead import BegunAhead
from weft_worker_agent.outbound.files.node_files import NodeFiles
from weft_worker_agent.outbound.files.peers import Peers
from weft_worker_agent.outbound.files.source_secrets import SourceSecrets
from weft_worker_agent.outbound.machine import inventory
from weft_worker_agent.outbound.machine.accelerators.nvidia import Nvml
from weft_worker_agent.outbound.machine.accelerators.search import search
from weft_worker_agent.outbound.mesh.certificate import NodeCertificate
from weft_worker_agent.outbound.mesh.credential import Credential
from weft_worker_agent.outbound.mesh.gateway import Gateway
from weft_worker_agent.outbound.mesh.identity import NodeIdentity
from weft_worker_agent.outbound.mesh.joining import Joining
from weft_worker_agent.outbound.mesh.lease import LeaseThread
from weft_worker_agent.outbound.mesh.mesh_trust import MeshTrust
from weft_worker_agent.outbound.mesh.node_secrets import NodeSecrets
from weft_worker_agent.outbound.mesh.readers import Readers
from weft_worker_agent.outbound.mesh.registration import registration
from weft_worker_agent.outbound.processes.hosts import Hosts
from weft_worker_agent.outbound.processes.supervisor_client import SupervisorClient
from weft_worker_agent.projections.own_log import OwnLog
from weft_worker_agent.settings import WorkerSettings

_BEAT_S = 1.0
_log: Any = logs.get_logger("weft.worker_agent")


class Agent:
    """One agent, from its start to its end."""

    def __init__(
        self,
        settings: WorkerSettings,
        supervisor_socket: Path,
        identity: NodeIdentity,
        certificate: NodeCertificate | None = None,
    ) -> None:
        """`certificate`: where the mesh speaks TLS; None: it speaks plainly."""
        self._settings = settings
        self._identity = identity
        self._certificate = certificate
        self._holder = f"worker-{secrets.token_hex(4)}"
        self._supervisor = SupervisorClient(supervisor_socket)
        self._own = OwnLog()
        self._engines = OwnEngines(settings, lambda: self._installs_changed())
        trust = MeshTrust(certificate, settings.token[1]) if certificate is not None else None
        self._gateway = Gateway(settings.gateway_url, identity, trust=trust)
        node_secrets = NodeSecrets(self._gateway)
        self._files = NodeFiles(
            settings.store_folder,
            SourceSecrets(settings.model_sources, node_secrets),
            at_once=settings.files_at_once,
            most_bytes=settings.files_most_bytes,
            changed=lambda: self._changed(),
            peers=Peers(self._gateway, certificate.clients() if certificate is not None else None),
            bucket=settings.mesh_store,
        )
        self._files.offered.expected = self._expected_files
        store = self._files.mesh_store
        self._storing = (
            StoringLoop(store, self._expected_files, lambda: self._files.fetches.there) if store is not None else None
        )
        starts = own_starts(
            settings,
            identity,
            self._supervisor,
            self._engines,
            self._files,
            node_secrets,
            tls_folder=certificate.folder if certificate is not None else None,
            changed=lambda: self._changed(),
        )
        self._hosts = Hosts(starts)
        self._backends: BackendsLoop | None = None
        if (installer := self._engines.installer) is not None:
            keep = settings.install_keep
            self._backends = BackendsLoop(self._own, self._hosts, installer, keep, lambda: self._installs_changed())
        self._files_loop = FilesLoop(
            self._own,
            self._files.fetches,
            lambda: used(self._own, self._hosts),
            lambda: self._changed(),
            BegunAhead(settings.state / "ahead"),
        )
        self._secrets = SecretsLoop(self._own, self._hosts, node_secrets, settings.secrets_every)
        self._bounds = settings.load_bounds
        self._steering = SteeringLoop(self._own, self._hosts, time.monotonic, self._bounds)
        self._health = Health()
        self._nvml = Nvml()
        use = settings.use
        self._machine = MachineWatch(
            self._engines.report(self._hosts), use, lambda: search(self._nvml), lambda: self._changed()
        )
        if self._backends is not None:
            self._machine.install_fault = self._backends.fault
        self._machine.files_fault = self._files_loop.fault
        self._pressure: PressureWatch | None = None
        if settings.parts == 1:  # what other workers of one machine use would be taken for pressure
            self._pressure = PressureWatch(
                identity.node,
                self._own,
                self._hosts,
                self._nvml,
                lambda: self._changed(),
                lambda: self._machine.accelerators,
            )
        self._progress = ProgressWatch(identity.node, self._hosts, self._engines.installer, settings.install_overdue)
        self._lease: LeaseThread | None = None
        self._log_connection: LogConnection | None = None
        show_metrics(
            identity,
            self._files,
            self._own,
            self._hosts,
            self._pressure,
            self._health,
            lease=lambda: self._lease,
            connection=lambda: self._log_connection,
        )
        self._own_drain = OwnDrain(self._gateway, self._own)
        self._host_changed = Wake()
        self._stopping = Stopping(
            self._own,
            self._hosts,
            self._steering,
            self._own_drain,
            self._host_changed,
            lambda: self._log_connection.reporting if self._log_connection is not None else None,
            lifeline_fd=settings.lifeline_fd,
            drain_s=settings.drain_timeout,
            stop_s=settings.stop_timeout,
        )

    async def run(self) -> None:
        """Live until told to stop. Raises CannotJoin, SupervisorGone, OSError."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.told, number)
        await self._hosts.refresh()  # adopt what runs before anything else: it must not wait for the log
        listener = listening(self._settings.state, self._settings.http_host, self._settings.http_port)
        routes = node_routes(
            self._settings.state / "logs",
            self._hosts,
            self._files,
            Readers(self._gateway),
            worker_filters(self._identity.node),
            roles=caller_roles(self._certificate),
            most=self._settings.files_readers,
        )
        server = node_server(web.app(self._health, routes), self._settings.http_host, self._certificate)
        self._log_connection = self._new_log_connection(listener.getsockname()[1])
        roots = {
            "files": server.serve(sockets=[listener]),
            "supervisor": follow_supervisor(self._supervisor, self._hosts, self._steering.wake),
            "steering": self._steering.run(),
            "log connection": self._log_connection.run(),
            "pulses": self._hosts.watch_pulses(self._settings.stall_bounds),
            "claims": watch_claims(self._identity.node, self._own, self._hosts),
            "loads": self._hosts.watch_loads(self._bounds.still_s / 4),
            "secrets": self._secrets.run(),
            "pulse": self._beat(),
            "machine": self._machine.run(),
            "disks": watch_disks(self._rebase, lambda: bool(self._engines.room)),
            "progress": self._progress.run(),
            "store": watch_store(self._own, self._hosts, self._files.fetches, self._gateway),
            "wanted files": self._files_loop.run(),
            "leaving": self._own_drain.come_back(),
            **({"mesh store": self._storing.run()} if self._storing is not None else {}),
            **({"backends": self._backends.run()} if self._backends is not None else {}),
            **({"pressure": self._pressure.run()} if self._pressure is not None else {}),
            "stop": self._stopping.run(),
        }
        tasks = [asyncio.create_task(work, name=name) for name, work in roots.items()]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # raises what ended it
            if not self._stopping.begun.is_set():
                raise RuntimeError(f"{done.pop().get_name()} has ended, which has no end")
        finally:
            if self._lease is not None:
                self._lease.stop()
            server.should_exit = True
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._engines.installer is not None:
                await self._engines.installer.close()
            await self._files.close()
            await self._nvml.close()
            await self._hosts.close()
            self._supervisor.close()

    def _new_log_connection(self, http_port: int) -> LogConnection:
        settings = self._settings
        body = registration(
            settings.node_name,
            self._identity,
            self._certificate,
            host=settings.advertise_host,
            http_port=http_port,
            labels=settings.labels,
            replicas_per_model=settings.max_replicas_per_model,
        )
        return LogConnection(
            self._identity,
            Joining(self._gateway, settings.state, body, settings.token[0]),
            self._own,
            self._hosts,
            self._steering,
            self._machine,
            self._pressure,
            self._progress,
            self._files.elsewhere,
            self._health,
            self._show,
        )

    def _show(self, credential: Credential) -> None:
        if self._lease is None:
            self._lease = LeaseThread(self._identity, credential, self._holder)
            self._lease.start()
        else:
            self._lease.show(credential)

    def _expected_files(self) -> Iterable[ModelSpec | FilesWanted]:
        """What this node was given to run, or is to have ahead of need."""
        part = self._own.part
        return [*(each.fact.spec for each in part.assignments.values()), *part.file_wishes.wanted.values()]

    def _installs_changed(self) -> None:
        """An engine was installed, or could not be."""
        self._hosts.starts.engines = inventory.known(self._engines.environments, self._engines.installed)
        self._rebase()

    def _rebase(self) -> None:
        self._machine.rebase(self._engines.report(self._hosts))

    def _changed(self) -> None:
        """Something about a host changed."""
        self._steering.wake.ring()
        if self._backends is not None:
            self._backends.wake.ring()
        self._files_loop.wake.ring()
        if self._storing is not None:
            self._storing.wake.ring()
        self._host_changed.ring()
        if self._log_connection is not None and self._log_connection.reporting is not None:
            self._log_connection.reporting.wake.ring()

    async def _beat(self) -> None:
        while True:
            if self._lease is not None:
                self._lease.beat()
            await asyncio.sleep(_BEAT_S)
