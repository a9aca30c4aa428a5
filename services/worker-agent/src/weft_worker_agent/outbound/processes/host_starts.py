"""How an engine host begins: its engine is installed, its files found, its port chosen, its process spawned."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from weft_contracts.engines import BUILTIN, Profiles
from weft_contracts.facts.source import UploadSource
from weft_contracts.facts.values import EngineName, ModelSpec, Vendor
from weft_contracts.secrets import secrets_in
from weft_runtime.logs import get_logger

from weft_worker_agent.domain.claimed_devices import ClaimedDevice, DeviceGone, claimed_devices
from weft_worker_agent.domain.hosts import End
from weft_worker_agent.domain.install_faults import InstallFault
from weft_worker_agent.domain.numa import Bound
from weft_worker_agent.domain.own_part import Assignment
from weft_worker_agent.domain.steering import Start
from weft_worker_agent.outbound.backends.first_run import InstallFailed
from weft_worker_agent.outbound.backends.installer import Installer, Interpreter
from weft_worker_agent.outbound.files.found import Found, NotFound
from weft_worker_agent.outbound.files.model_fetches import FetchFailed, ModelFetches, remote_source
from weft_worker_agent.outbound.files.model_files import look, look_at_fetched
from weft_worker_agent.outbound.files.publishing import Publishing
from weft_worker_agent.outbound.mesh.node_secrets import HeldSecret, NodeSecrets, NoSecret, lines
from weft_worker_agent.outbound.processes import launch
from weft_worker_agent.outbound.processes.draft import check_draft
from weft_worker_agent.outbound.processes.engine_ports import NoPort, next_port
from weft_worker_agent.outbound.processes.host_entry import HostContext, HostEntry
from weft_worker_agent.outbound.processes.loras import loras_of
from weft_worker_agent.outbound.processes.numa_choice import NumaChoice
from weft_worker_agent.outbound.processes.supervisor_client import SupervisorClient, SupervisorRefused

_HOLDS, _HOLD_AGAIN_S = 5, 0.2
_log: Any = get_logger("weft.hosts")


class HostStarts:
    """What hosts of this node are started with, and the way from a decision to a process."""

    def __init__(
        self,
        context: HostContext,
        supervisor: SupervisorClient,
        *,
        launches: Path,
        python: str,
        first_port: int = 0,
        pythons: Mapping[str, str] = MappingProxyType({}),
        engines: Profiles = BUILTIN,
        installer: Installer | None = None,
        canary_after_s: float = launch.CANARY_AFTER_S,
        secrets: NodeSecrets | None = None,
        threads: int = 1,
        numa: NumaChoice | None = None,
        fetches: ModelFetches | None = None,
        publishing: Publishing | None = None,
    ) -> None:
        """`first_port` is the lowest of engines' ports (0: any); `pythons` are the interpreters of engines with an
        environment of their own, `engines` those that this node knows; `installer` makes the environments of others
        (None: nothing is installed). `canary_after_s`, `threads`: see the launch. `secrets`: where the values come
        from that a spec names; None: it has none. `numa`: None: no engine is kept to a NUMA node. `fetches`: what
        brings models here from their sources; None: nothing is brought. `publishing`: what is told of their small
        files; None: what lies beside them.
        """
        self.context = context
        self.supervisor = supervisor
        self.engines = engines
        self.installer = installer
        self.fetches = fetches
        self.publishing = publishing or Publishing()
        self._launches = launches
        self._python = python
        self._pythons = pythons
        self._first_port = first_port
        self._canary_after_s = canary_after_s
        self._secrets = secrets
        self._threads = threads
        self._numa = numa or NumaChoice(context.node)

    @property
    def install_room(self) -> int | None:
        """Bytes free on the disk of engines; None: nothing is installed here, or it is not known."""
        return self.installer.free if self.installer is not None else None

    def lacks(self, assignment: Assignment) -> bool:
        """Whether its engine must be installed before."""
        engine, variant, installer = assignment.fact.spec.engine, assignment.fact.backend, self.installer
        if variant is None or installer is None or engine in self._pythons:
            return False
        return not installer.has(engine, variant)

    def fetches_for(self, assignment: Assignment) -> int | None:
        """Bytes of its model's files that must be fetched before; None: none."""
        return self.fetches.lacks(assignment.fact.spec) if self.fetches is not None else None

    def environment_of(self, start: Start) -> str:
        """The name of the environment that a host is to run in; empty: none that was made for it."""
        fact, installer = start.assignment.fact, self.installer
        engine = fact.spec.engine
        if installer is None or engine in self._pythons:
            return ""
        if fact.backend is not None:
            return installer.name_of(engine, fact.backend)
        try:
            devices = claimed_devices(start.assignment, self.context.node, start.reported)
        except DeviceGone:
            return ""
        found = installer.find(engine, _vendor(devices))
        return found.name if found is not None else ""

    async def begin(
        self, entry: HostEntry, start: Start, taken: Callable[[], set[int]], bound: Callable[[], list[Bound]]
    ) -> None:
        """Start the host of an entry, or say in it why that can't be.

        `taken`: the ports of the others; `bound`: those that are kept to a NUMA node.
        """
        identity, assignment = entry.identity, start.assignment
        try:
            devices = claimed_devices(assignment, self.context.node, start.reported)
            interpreter = await self._interpreter(entry, assignment)
            if not entry.host.lives:
                return
            if (found := await self._found(entry, assignment)) is None:
                return
            loras = await asyncio.to_thread(loras_of, assignment.fact.spec, self.engines)
            await asyncio.to_thread(check_draft, assignment.fact.spec, self.engines)
            entry.model, entry.model_bytes = found.path, found.size
            entry.offers = await self.publishing.offers(found)
            entry.port = next_port(self.context.address, self._first_port, taken())
            numa = self._numa.of(start, bound())
            if numa is not None:
                identity = entry.identity = replace(identity, bound=numa[1])
            file = launch.write_launch_file(
                self._launches,
                assignment,
                devices,
                self.context.node,
                identity.incarnation,
                found.path,
                self.context.address,
                entry.port,
                self.context.tls_folder,
                self._canary_after_s,
                self._threads,
                loras,
                numa[0] if numa is not None else None,
            )
            secrets = await self._secrets_of(entry, assignment)
            argv = launch.command(interpreter.python, file, secrets=secrets is not None)
            if entry.host.retire_at is not None:
                entry.set_end(End(None, "retired before its start", permanent=False))
                return
            entry.pid = await self.supervisor.spawn(
                identity.incarnation,
                argv,
                {**launch.environment(), **interpreter.environment},
                identity.body(),
                lines(secrets) if secrets is not None else None,
            )
            entry.supervised = True
            at = {"numa_node": identity.bound.node} if identity.bound is not None else {}
            _log.info("host started", replica=identity.replica, incarnation=identity.incarnation, **at)
        except InstallFailed as failed:
            if not entry.host.lives:
                return
            fault = failed.fault
            again = not (fault.permanent or fault.local)
            end = End(None, fault.reason, fault.permanent, local=fault.local, uninstalled=again, room=fault.room)
            entry.set_end(end)
        except FetchFailed as failed:
            again = not (failed.no_room or failed.permanent)
            end = End(None, str(failed), failed.permanent, local=failed.no_room, unfetched=again)
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
        except Exception as error:  # whatever a strange file does to its reader, the replica ends with a reason
            _log.exception("host not started", replica=identity.replica, incarnation=identity.incarnation)
            fault = f"an unexpected fault on this node ({type(error).__name__}): its agent's log has it"
            entry.set_end(End(None, f"the engine could not be started: {fault}", permanent=False))
        self.context.wake()

    async def _interpreter(self, entry: HostEntry, assignment: Assignment) -> Interpreter:
        """What runs the engine; it is installed before where it is not there. Nobody removes it while the host lives.

        Raises InstallFailed.
        """
        engine, variant, installer = entry.identity.engine, assignment.fact.backend, self.installer
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
                entry.host = replace(entry.host, installing=False, started_at=self.context.clock())
                self.context.wake()
            return await installer.interpreter(backend)
        raise InstallFailed(InstallFault(f"{name} was removed while {engine} was to start in it"))

    async def _found(self, entry: HostEntry, assignment: Assignment) -> Found | None:
        """The model's files, fetched before where they lie at a source; None where the host ended meanwhile.

        Raises NotFound and FetchFailed.
        """
        identity, spec = entry.identity, assignment.fact.spec
        if remote_source(spec) is None:
            found = await asyncio.to_thread(look, identity.source, identity.engine, self.engines)
            if (changed := found.another_than(spec.weights)) is not None:
                raise NotFound(changed)
            return found
        if self.fetches is None:
            raise NotFound(f"{identity.source} is not on this node, and it fetches nothing")
        folder = await entry.unless_ended(self.fetches.want(spec, identity.replica))
        if folder is None:
            return None
        if entry.host.fetching is not None:
            entry.host = replace(entry.host, fetching=None, started_at=self.context.clock())
            self.context.wake()
        return await asyncio.to_thread(_looked_at, folder, spec, identity.engine)

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


def _looked_at(folder: Path, spec: ModelSpec, engine: EngineName) -> Found:
    """What came of a model. Raises NotFound, and FetchFailed where a file that was sent isn't what its sender told."""
    first = spec.files[0].name
    if not isinstance(spec.source, UploadSource):
        return look_at_fetched(folder, first, engine)
    try:
        found = look_at_fetched(folder, first, engine)
    except NotFound as unusable:
        raise FetchFailed(f"{first} was sent, and can't be used: {unusable}", permanent=True) from None
    if not found.weights.without_layers.same_as(spec.weights.without_layers):
        raise FetchFailed(f"{first} is not what was told before it was sent: deploy it again", permanent=True)
    return found


def _vendor(devices: Sequence[ClaimedDevice]) -> Vendor:
    """Whose devices an engine computes on."""
    accelerators: list[Vendor] = [device.vendor for device in devices if device.vendor != "cpu"]
    return accelerators[0] if accelerators else "cpu"
