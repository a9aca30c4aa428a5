"""This node's engine hosts: started, watched and ended through the supervisor, known as values to the rules."""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from weft_contracts.digest import source_key
from weft_contracts.engines import BUILTIN, Profiles
from weft_contracts.ids import Incarnation, NodeId, ReplicaId
from weft_contracts.secrets import secrets_in
from weft_contracts.signals import ReplicaLoad
from weft_runtime.logs import get_logger

from weft_worker_agent.domain.claimed_devices import DeviceGone, claimed_devices
from weft_worker_agent.domain.hosts import End, Host
from weft_worker_agent.domain.loading import seen
from weft_worker_agent.domain.own_part import Assignment
from weft_worker_agent.domain.stall import stalled
from weft_worker_agent.domain.steering import Action, Forget, Retire, Signal, Start
from weft_worker_agent.outbound.files.metadata import Offer
from weft_worker_agent.outbound.files.model_files import Found, NotFound, look
from weft_worker_agent.outbound.mesh.node_secrets import HeldSecret, NodeSecrets, NoSecret, lines
from weft_worker_agent.outbound.processes import launch
from weft_worker_agent.outbound.processes.engine_ports import NoPort, next_port
from weft_worker_agent.outbound.processes.host_entry import HostContext, HostEntry
from weft_worker_agent.outbound.processes.launch import LaunchIdentity
from weft_worker_agent.outbound.processes.load_progress import taken_in
from weft_worker_agent.outbound.processes.supervisor_client import SupervisedHost, SupervisorClient, SupervisorRefused

_log: Any = get_logger("weft.hosts")


class Hosts:
    """All hosts that this agent started or found. Methods are called on the loop."""

    def __init__(
        self,
        supervisor: SupervisorClient,
        *,
        node: NodeId,
        launches: Path,
        python: str,
        address: str,
        first_port: int = 0,
        pythons: Mapping[str, str] = MappingProxyType({}),
        engines: Profiles = BUILTIN,
        wake: Callable[[], None],
        tls_folder: Path | None = None,
        secrets: NodeSecrets | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`address` is where engines listen, `first_port` the lowest of their ports (0: any); `pythons` are the
        interpreters of engines with an environment of their own, `engines` those that this node knows; `wake` is
        called when rules have something to look at. `tls_folder`: the node's certificate, which hosts show; None: they
        speak plainly. `secrets`: where the values come from that a spec names; None: it has none.
        """
        self._context = HostContext(node, address, tls_folder, clock, wake)
        self._supervisor = supervisor
        self.engines = engines
        self._launches = launches
        self._python = python
        self._pythons = pythons
        self._first_port = first_port
        self._secrets = secrets
        self._entries: dict[Incarnation, HostEntry] = {}
        self._work: set[asyncio.Task[None]] = set()

    def view(self) -> list[Host]:
        """The hosts as the rules see them, oldest first."""
        now = self._context.clock()
        return [replace(e.host, stalled=stalled(e.pulse, now)) for e in self._entries.values()]

    def loads(self) -> tuple[ReplicaLoad, ...]:
        """The last load of each living host that told one."""
        return tuple(e.load for e in self._entries.values() if e.load is not None and e.host.lives)

    def pids(self) -> list[int]:
        """Of the processes of all living hosts."""
        return [e.pid for e in self._entries.values() if e.pid is not None and e.host.lives]

    def offer(self, replica: str, name: str) -> Offer | None:
        """The metadata file that a living run of a replica registered under a name."""
        for entry in self._entries.values():
            if entry.host.replica == replica and entry.host.lives and entry.host.answering is not None:
                for offer in entry.offers or ():
                    if offer.file.name == name:
                        return offer
        return None

    async def refresh(self) -> None:
        """Take over what the supervisor says: hosts not known yet are adopted. Raises SupervisorGone."""
        for supervised in await self._supervisor.hosts():
            identity = LaunchIdentity.of(supervised.launch)
            if identity is None:
                continue
            entry = self._entries.get(identity.incarnation) or self._adopt(identity, supervised)
            entry.supervised, entry.pid = True, supervised.pid
            entry.heard_line(launch.status_of(supervised.status))
            if supervised.exit_code is not None and entry.host.lives:
                entry.ended(supervised)

    async def do(self, action: Action) -> None:
        """Carry out what the rules decided. Raises SupervisorGone."""
        match action:
            case Start():
                self._start(action)
            case Retire(incarnation=incarnation, within_s=within):
                self._entries[incarnation].retire(within)
            case Signal(incarnation=incarnation):
                await self._signal(self._entries[incarnation], action)
            case Forget(incarnation=incarnation):
                await self._forget(self._entries[incarnation])

    async def watch_loads(self, every_s: float) -> None:
        """Look every so often whether those that load get on, for ever."""
        while True:
            await asyncio.sleep(every_s)
            loading = [e for e in self._entries.values() if e.host.lives and e.host.answering is None]
            for entry in loading:
                taken = await asyncio.to_thread(taken_in, entry.pid) if entry.pid is not None else None
                if taken is not None:
                    entry.progress = seen(entry.progress, taken, self._context.clock())
                    entry.host = replace(entry.host, grew_at=entry.progress.grew_at)

    async def close(self) -> None:
        """Stop watching; the hosts live on."""
        for entry in self._entries.values():
            if entry.watch is not None:
                entry.watch.close()
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    def _start(self, start: Start) -> None:
        incarnation = Incarnation(f"i-{secrets.token_hex(8)}")
        fact = start.assignment.fact
        host = Host(fact.replica, fact.epoch, incarnation, self._context.clock())
        key = source_key(fact.spec)
        identity = LaunchIdentity(fact.replica, fact.epoch, incarnation, key, fact.spec.engine)
        entry = HostEntry(host, identity, self._context)
        self._entries[incarnation] = entry
        self._in_background(self._spawn(entry, start))

    async def _spawn(self, entry: HostEntry, start: Start) -> None:
        identity, assignment = entry.identity, start.assignment
        try:
            devices = claimed_devices(assignment, self._context.node, start.reported)
            found = await asyncio.to_thread(look, identity.source, identity.engine, self.engines)
            if (changed := found.another_than(assignment.fact.spec.weights)) is not None:
                raise NotFound(changed)
            entry.offers = found.offers
            entry.port = next_port(self._context.address, self._first_port, self._ports())
            file = launch.write_launch_file(
                self._launches,
                assignment,
                devices,
                self._context.node,
                identity.incarnation,
                found.path,
                self._context.address,
                entry.port,
                self._context.tls_folder,
            )
            secrets = await self._secrets_of(entry, assignment)
            argv = launch.command(self._pythons.get(identity.engine, self._python), file, secrets=secrets is not None)
            if entry.host.retire_at is not None:
                entry.set_end(End(None, "retired before its start", permanent=False))
                return
            entry.pid = await self._supervisor.spawn(
                identity.incarnation,
                argv,
                launch.environment(),
                identity.body(),
                lines(secrets) if secrets is not None else None,
            )
            entry.supervised = True
            _log.info("host started", replica=identity.replica, incarnation=identity.incarnation)
        except NoPort as error:
            entry.set_end(End(None, f"the engine could not be started: {error}", permanent=False))
        except (NotFound, DeviceGone) as missing:
            entry.set_end(End(None, str(missing), permanent=False, local=True))
        except OSError as error:
            why = f"the engine could not be started: {self._launches} takes no file ({error.strerror or error})"
            entry.set_end(End(None, why, permanent=False))
        except (SupervisorRefused, KeyError) as error:
            entry.set_end(End(None, f"the engine could not be started: {error}", permanent=False))
        except NoSecret as missing:
            entry.set_end(End(None, str(missing), permanent=False))
        self._context.wake()

    async def _secrets_of(self, entry: HostEntry, assignment: Assignment) -> dict[str, HeldSecret] | None:
        """The values that a host is started with; None where its spec names none. Raises NoSecret."""
        names = secrets_in(assignment.fact.spec.engine_args)
        if not names:
            return None
        if self._secrets is None:
            raise NoSecret(f"the secret {min(names)} can't be fetched: this worker has no gateway for it")
        found = await self._secrets.fetched(names, lambda: entry.host.retire_at is None and entry.host.term_at is None)
        entry.told = {name: each.version for name, each in found.items()}
        return found

    async def tell_secrets(self, replica: ReplicaId, secrets: Mapping[str, HeldSecret]) -> None:
        """Tell a replica's living hosts what is newer than what they have. Raises SupervisorGone."""
        for entry in [e for e in self._entries.values() if e.host.replica == replica]:
            newer = {name: each for name, each in secrets.items() if entry.told.get(name) != each.version}
            if not newer or not entry.host.lives or not entry.supervised:
                continue
            entry.told.update({name: each.version for name, each in newer.items()})
            try:
                await self._supervisor.tell(entry.host.incarnation, lines(newer))
                _log.info("host told of secrets", incarnation=entry.host.incarnation, secrets=sorted(newer))
            except SupervisorRefused as refusal:
                _log.warning("host not told of secrets", incarnation=entry.host.incarnation, why=str(refusal))

    def _ports(self) -> set[int]:
        """Those of the living hosts."""
        return {port for e in self._entries.values() if e.host.lives for port in (e.port, e.status.port) if port}

    def _adopt(self, identity: LaunchIdentity, supervised: SupervisedHost) -> HostEntry:
        host = Host(identity.replica, identity.epoch, identity.incarnation, self._context.clock())
        entry = self._entries[identity.incarnation] = HostEntry(host, identity, self._context)
        _log.info("host found", replica=identity.replica, incarnation=identity.incarnation, pid=supervised.pid)
        if supervised.exit_code is None:
            self._in_background(self._find_offers(entry))
        return entry

    async def _find_offers(self, entry: HostEntry) -> None:
        """Look for an adopted host's metadata files, as at its start."""
        try:
            found: Found = await asyncio.to_thread(look, entry.identity.source, entry.identity.engine, self.engines)
            entry.offers = found.offers
        except NotFound:
            entry.offers = ()
        entry.heard_line(entry.status)

    async def _signal(self, entry: HostEntry, action: Signal) -> None:
        now, name = self._context.clock(), action.signal
        changed = {"term_at": now} if name == "TERM" else {"kill_at": now}
        entry.host = replace(entry.host, **changed)
        if action.for_good:
            entry.host = replace(entry.host, given_up_for=action.why)
        _log.warning("host signalled", incarnation=entry.host.incarnation, signal=name, why=action.why)
        if entry.supervised:
            try:
                await self._supervisor.signal(entry.host.incarnation, name)
            except SupervisorRefused as refusal:
                _log.info("signal not sent", incarnation=entry.host.incarnation, why=str(refusal))

    async def _forget(self, entry: HostEntry) -> None:
        if entry.supervised:
            try:
                await self._supervisor.reap(entry.host.incarnation)
            except SupervisorRefused as refusal:
                _log.info("host not reaped", incarnation=entry.host.incarnation, why=str(refusal))
        del self._entries[entry.host.incarnation]

    def _in_background(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
