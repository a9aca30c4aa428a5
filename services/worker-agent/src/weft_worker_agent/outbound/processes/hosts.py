"""This node's engine hosts: started and ended through the supervisor, known as values to the rules."""

import asyncio
import contextlib
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from weft_contracts.digest import files_digest
from weft_contracts.ids import Incarnation, ReplicaId
from weft_contracts.source_keys import source_key
from weft_runtime.logs import get_logger

from weft_worker_agent.domain.hosts import Host
from weft_worker_agent.domain.numa import Bound
from weft_worker_agent.domain.steering import Action, Forget, Retire, Signal, Start
from weft_worker_agent.outbound.files.found import Found, NotFound
from weft_worker_agent.outbound.files.model_fetches import remote_source
from weft_worker_agent.outbound.files.model_files import look, look_at_fetched
from weft_worker_agent.outbound.machine.memory_kills import memory_kills
from weft_worker_agent.outbound.mesh.node_secrets import HeldSecret, lines
from weft_worker_agent.outbound.processes import launch
from weft_worker_agent.outbound.processes.host_entry import HostEntry
from weft_worker_agent.outbound.processes.host_starts import HostStarts
from weft_worker_agent.outbound.processes.launch import LaunchIdentity
from weft_worker_agent.outbound.processes.supervisor_client import (
    SupervisedHost,
    SupervisorGone,
    SupervisorRefused,
)
from weft_worker_agent.outbound.processes.watched_hosts import WatchedHosts

_HURRY_S = 0.3
"""From the first TERM to the second: signals that come at once are one."""
_log: Any = get_logger("weft.hosts")


class Hosts(WatchedHosts):
    """Starts them, tells and ends them, finds those that an earlier agent left. Methods are called on the loop."""

    def __init__(self, starts: HostStarts) -> None:
        super().__init__(starts.context)
        self.starts = starts
        self._supervisor = starts.supervisor
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
            backend=self.starts.environment_of(start),
            installing=self.starts.lacks(start.assignment),
            fetching=self.starts.fetches_for(start.assignment),
        )
        key = source_key(fact.spec.source)
        identity = LaunchIdentity(
            fact.replica, fact.epoch, incarnation, key, fact.spec.engine, host.backend, model=fact.model_name
        )
        if remote_source(fact.spec) is not None and fact.spec.files:
            identity = replace(identity, files=files_digest(fact.spec), first=fact.spec.files[0].name)
        entry = HostEntry(host, identity, self._context)
        self._entries[incarnation] = entry
        self._in_background(self.starts.begin(entry, start, self._ports, self._bound))

    @property
    def environments(self) -> frozenset[str]:
        """The names of those that living hosts run in."""
        return frozenset(e.host.backend for e in self._entries.values() if e.host.lives and e.host.backend)

    @property
    def files(self) -> frozenset[str]:
        """The `files_digest` of the fetched models that living hosts load or have loaded."""
        return frozenset(e.identity.files for e in self._entries.values() if e.host.lives and e.identity.files)

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

    def _bound(self) -> list[Bound]:
        """The living hosts that are kept to a NUMA node, also those of an agent before this one."""
        return [e.identity.bound for e in self._entries.values() if e.host.lives and e.identity.bound is not None]

    def _ports(self) -> set[int]:
        """Those of the living hosts."""
        return {port for e in self._entries.values() if e.host.lives for port in (e.port, e.status.port) if port}

    def _adopt(self, identity: LaunchIdentity, supervised: SupervisedHost) -> HostEntry:
        host = Host(
            identity.replica, identity.epoch, identity.incarnation, self._context.clock(), backend=identity.backend
        )
        entry = self._entries[identity.incarnation] = HostEntry(host, identity, self._context)
        if supervised.exit_code is None and identity.backend and self.starts.installer is not None:
            entry.held = self.starts.installer.hold(identity.backend)
        _log.info("host found", replica=identity.replica, incarnation=identity.incarnation, pid=supervised.pid)
        if supervised.exit_code is None:
            self._in_background(self._find_offers(entry))
        return entry

    async def _find_offers(self, entry: HostEntry) -> None:
        """Look for an adopted host's metadata files, as at its start."""
        try:
            found = await asyncio.to_thread(self._adopted_files, entry.identity)
            entry.model, entry.model_bytes = found.path, found.size
            entry.offers = await self.starts.publishing.offers(found)
        except NotFound:
            entry.offers = ()
        entry.heard_line(entry.status)

    def _adopted_files(self, identity: LaunchIdentity) -> Found:
        """Raises NotFound."""
        fetches = self.starts.fetches
        if identity.files and fetches is not None:
            return look_at_fetched(fetches.folder_of(identity.files), identity.first, identity.engine)
        return look(identity.source, identity.engine, self.starts.engines)

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
