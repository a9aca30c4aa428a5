"""This node's engine hosts: started and ended through the supervisor, known as values to the rules."""

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from weft_contracts.digest import source_key
from weft_contracts.engines import BUILTIN, Profiles
from weft_contracts.facts.values import Vendor
from weft_contracts.ids import Incarnation, NodeId, ReplicaId
from weft_contracts.secrets import secrets_in
from weft_runtime.logs import get_logger

from weft_worker_agent.domain.claimed_devices import ClaimedDevice, DeviceGone, claimed_devices
from weft_worker_agent.domain.hosts import End, Host
from weft_worker_agent.domain.install_faults import InstallFault
from weft_worker_agent.domain.own_part import Assignment
from weft_worker_agent.domain.steering import Action, Forget, Retire, Signal, Start
from weft_worker_agent.outbound.backends.first_run import InstallFailed
from weft_worker_agent.outbound.backends.installer import Installer, Interpreter
from weft_worker_agent.outbound.files.found import Found, NotFound
from weft_worker_agent.outbound.files.model_files import look
from weft_worker_agent.outbound.machine.memory_kills import memory_kills
from weft_worker_agent.outbound.mesh.node_secrets import HeldSecret, NodeSecrets, NoSecret, lines
from weft_worker_agent.outbound.processes import launch
from weft_worker_agent.outbound.processes.engine_ports import NoPort, next_port
from weft_worker_agent.outbound.processes.host_entry import HostContext, HostEntry
from weft_worker_agent.outbound.processes.launch import LaunchIdentity
from weft_worker_agent.outbound.processes.loras import loras_of
from weft_worker_agent.outbound.processes.supervisor_client import (
    SupervisedHost,
    SupervisorClient,
    SupervisorGone,
    SupervisorRefused,
)
from weft_worker_agent.outbound.processes.watched_hosts import WatchedHosts

_HOLDS, _HOLD_AGAIN_S = 5, 0.2
_HURRY_S = 0.3
"""From the first TERM to the second: signals that come at once are one."""
_log: Any = get_logger("weft.hosts")


class Hosts(WatchedHosts):
    """Starts them, tells and ends them, finds those that an earlier agent left. Methods are called on the loop."""

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
        installer: Installer | None = None,
        wake: Callable[[], None],
        tls_folder: Path | None = None,
        canary_after_s: float = launch.CANARY_AFTER_S,
        secrets: NodeSecrets | None = None,
        threads: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`address` is where engines listen, `first_port` the lowest of their ports (0: any); `pythons` are the
        interpreters of engines with an environment of their own, `engines` those that this node knows; `installer`
        makes the environments of others (None: nothing is installed); `wake` is called when rules have something to
        look at. `tls_folder`: the node's certificate, which hosts show; None: they speak plainly. `canary_after_s`,
        `threads`: see the launch. `secrets`: where the values come from that a spec names; None: it has none.
        """
        super().__init__(HostContext(node, address, tls_folder, clock, wake))
        self._supervisor = supervisor
        self.engines = engines
        self._launches = launches
        self._python = python
        self._pythons = pythons
        self._installer = installer
        self._first_port = first_port
        self._canary_after_s = canary_after_s
        self._secrets = secrets
        self._threads = threads
        self._work: set[asyncio.Task[None]] = set()

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
                entry.ended(supervised, memory_kills().since(self._kills[0]))

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
        host = Host(
            fact.replica,
            fact.epoch,
            incarnation,
            self._context.clock(),
            backend=self._environment_of(start),
            installing=self._lacks(start.assignment),
        )
        key = source_key(fact.spec)
        identity = LaunchIdentity(fact.replica, fact.epoch, incarnation, key, fact.spec.engine, host.backend)
        entry = HostEntry(host, identity, self._context)
        self._entries[incarnation] = entry
        self._in_background(self._spawn(entry, start))

    def _lacks(self, assignment: Assignment) -> bool:
        """Whether its engine must be installed before."""
        engine, variant, installer = assignment.fact.spec.engine, assignment.fact.backend, self._installer
        if variant is None or installer is None or engine in self._pythons:
            return False
        return not installer.has(engine, variant)

    def _environment_of(self, start: Start) -> str:
        """The name of the environment that a host is to run in; empty: none that was made for it."""
        fact, installer = start.assignment.fact, self._installer
        engine = fact.spec.engine
        if installer is None or engine in self._pythons:
            return ""
        if fact.backend is not None:
            return installer.name_of(engine, fact.backend)
        try:
            devices = claimed_devices(start.assignment, self._context.node, start.reported)
        except DeviceGone:
            return ""
        found = installer.find(engine, _vendor(devices))
        return found.name if found is not None else ""

    async def _spawn(self, entry: HostEntry, start: Start) -> None:
        identity, assignment = entry.identity, start.assignment
        try:
            devices = claimed_devices(assignment, self._context.node, start.reported)
            interpreter = await self._interpreter(entry, assignment)
            if not entry.host.lives:
                return
            found = await asyncio.to_thread(look, identity.source, identity.engine, self.engines)
            if (changed := found.another_than(assignment.fact.spec.weights)) is not None:
                raise NotFound(changed)
            loras = await asyncio.to_thread(loras_of, assignment.fact.spec, self.engines)
            entry.offers, entry.model, entry.model_bytes = found.offers, found.path, found.size
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
                self._canary_after_s,
                self._threads,
                loras,
            )
            secrets = await self._secrets_of(entry, assignment)
            argv = launch.command(interpreter.python, file, secrets=secrets is not None)
            if entry.host.retire_at is not None:
                entry.set_end(End(None, "retired before its start", permanent=False))
                return
            entry.pid = await self._supervisor.spawn(
                identity.incarnation,
                argv,
                {**launch.environment(), **interpreter.environment},
                identity.body(),
                lines(secrets) if secrets is not None else None,
            )
            entry.supervised = True
            _log.info("host started", replica=identity.replica, incarnation=identity.incarnation)
        except InstallFailed as failed:
            if not entry.host.lives:
                return
            fault = failed.fault
            again = not (fault.permanent or fault.local)
            end = End(None, fault.reason, fault.permanent, local=fault.local, uninstalled=again, room=fault.room)
            entry.set_end(end)
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

    async def _interpreter(self, entry: HostEntry, assignment: Assignment) -> Interpreter:
        """What runs the engine; it is installed before where it is not there. Nobody removes it while the host lives.

        Raises InstallFailed.
        """
        engine, variant, installer = entry.identity.engine, assignment.fact.backend, self._installer
        name = entry.host.backend
        if installer is None or not name:
            return Interpreter(self._pythons.get(engine, self._python), {})
        for _ in range(_HOLDS):
            if variant is not None:
                backend = await installer.want(engine, variant)
            else:
                backend = next((one for one in installer.installed if one.name == name), None)
            if backend is None or (held := installer.hold(backend.name)) is None:
                await asyncio.sleep(_HOLD_AGAIN_S)  # it is being removed: it is made again
                continue
            if not entry.host.lives:
                os.close(held)
            else:
                entry.held = held
            if entry.host.installing:
                entry.host = replace(entry.host, installing=False, started_at=self._context.clock())
                self._context.wake()
            return await installer.interpreter(backend)
        raise InstallFailed(InstallFault(f"{name} was removed while {engine} was to start in it"))

    @property
    def environments(self) -> frozenset[str]:
        """The names of those that living hosts run in."""
        return frozenset(e.host.backend for e in self._entries.values() if e.host.lives and e.host.backend)

    @property
    def install_room(self) -> int | None:
        """Bytes free on the disk of engines; None: nothing is installed here, or it is not known."""
        return self._installer.free if self._installer is not None else None

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
        host = Host(
            identity.replica, identity.epoch, identity.incarnation, self._context.clock(), backend=identity.backend
        )
        entry = self._entries[identity.incarnation] = HostEntry(host, identity, self._context)
        if supervised.exit_code is None and identity.backend and self._installer is not None:
            entry.held = self._installer.hold(identity.backend)
        _log.info("host found", replica=identity.replica, incarnation=identity.incarnation, pid=supervised.pid)
        if supervised.exit_code is None:
            self._in_background(self._find_offers(entry))
        return entry

    async def _find_offers(self, entry: HostEntry) -> None:
        """Look for an adopted host's metadata files, as at its start."""
        try:
            found: Found = await asyncio.to_thread(look, entry.identity.source, entry.identity.engine, self.engines)
            entry.offers, entry.model, entry.model_bytes = found.offers, found.path, found.size
        except NotFound:
            entry.offers = ()
        entry.heard_line(entry.status)

    async def _signal(self, entry: HostEntry, action: Signal) -> None:
        now, name = self._context.clock(), action.signal
        changed = {"term_at": now} if name == "TERM" else {"kill_at": now}
        entry.host = replace(entry.host, **changed)
        if action.for_good:
            entry.host = replace(entry.host, given_up_for=action.why)
        if entry.host.retire_at is None and not entry.host.ended_for:
            entry.host = replace(entry.host, ended_for=action.why)
        _log.warning("host signalled", incarnation=entry.host.incarnation, signal=name, why=action.why)
        if entry.supervised:
            try:
                await self._supervisor.signal(entry.host.incarnation, name)
            except SupervisorRefused as refusal:
                _log.info("signal not sent", incarnation=entry.host.incarnation, why=str(refusal))
        if action.at_once:
            self._in_background(self._hurry(entry))

    async def _hurry(self, entry: HostEntry) -> None:
        """A second TERM tells a host that what runs there gets no time."""
        await asyncio.sleep(_HURRY_S)
        if entry.host.lives and entry.supervised:
            with contextlib.suppress(SupervisorRefused, SupervisorGone):
                await self._supervisor.signal(entry.host.incarnation, "TERM")

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


def _vendor(devices: Sequence[ClaimedDevice]) -> Vendor:
    """Whose devices an engine computes on."""
    accelerators: list[Vendor] = [device.vendor for device in devices if device.vendor != "cpu"]
    return accelerators[0] if accelerators else "cpu"
