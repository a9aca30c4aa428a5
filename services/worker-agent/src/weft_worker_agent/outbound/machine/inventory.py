"""What this machine has: processors, memory, disk, installed engines, models that ship with them."""

import contextlib
import importlib.util
import os
import platform
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import psutil
from weft_contracts.backends import BuildTool
from weft_contracts.engines import Profiles
from weft_contracts.facts.machine import MOST_BACKENDS, Reported
from weft_contracts.facts.values import Backend, Device, EngineName, Hardware, Installs, Vendor
from weft_contracts.facts.values import InstalledBackend as TellsBackend
from weft_contracts.formats import READS
from weft_engine.installed import NotInstalled, profiles, version_of

from weft_worker_agent.outbound.backends.environments import InstalledBackend
from weft_worker_agent.outbound.backends.free_bytes import free_bytes
from weft_worker_agent.outbound.files.sources import BUILTINS
from weft_worker_agent.outbound.machine.backends import Environment

AGENT_VERSION = "0.1.0"
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_CPU_INFO = Path("/proc/cpuinfo")


def report(
    models: Path,
    parts: int,
    simulated: Collection[Vendor] = (),
    own: Mapping[EngineName, Environment] = MappingProxyType({}),
    installed: Sequence[InstalledBackend] = (),
    install_folder: Path | None = None,
    environments: Sequence[TellsBackend] = (),
    own_index: bool = False,
    room: Mapping[str, int] = MappingProxyType({}),
    builds: tuple[BuildTool, ...] = (),
) -> Reported:
    """What the agent says of its machine, without its accelerators; takes some milliseconds.

    Args:
        models: the folder whose disk's free space counts.
        parts: workers that share this machine: each reports its part of processors and memory.
        simulated: vendors of the accelerators that are made up here.
        own: engines that have an environment of their own.
        installed: engines that were installed for replicas, the newest first.
        install_folder: where further ones go; None: nothing may be installed.
        own_index: whether the operator named where packages come from.
        room: bytes that must be free before what the disk had too little for is tried again, by its recipe's digest.
        builds: what it can build engines with.
        environments: all that were installed, as the log is told of them.
    """
    return Reported(
        hardware=hardware(models, parts),
        backends=backends(simulated, own, installed),
        builtins=builtins(),
        environments=tuple(environments[:MOST_BACKENDS]),
        agent_version=AGENT_VERSION,
        installs=Installs(
            allowed=install_folder is not None,
            disk_free=free_bytes(install_folder) if install_folder is not None else None,
            own_index=own_index,
            room=dict(list(room.items())[-MOST_BACKENDS:]),
            builds=builds if install_folder is not None else None,
        ),
        reads=dict(READS),
    )


def hardware(models: Path, parts: int) -> Hardware:
    """This worker's part of the machine. The processor stands as device 0, with the memory as its own."""
    memory = _memory() // parts
    return Hardware(
        cpus=round(processors() / parts, 3),
        memory=memory,
        disk_free=free_bytes(models),
        architecture=platform.machine(),
        devices=(Device(index=0, vendor="cpu", name=_processor_name(), memory=memory),),
    )


def backends(
    simulated: Collection[Vendor] = (),
    own: Mapping[EngineName, Environment] = MappingProxyType({}),
    installed: Sequence[InstalledBackend] = (),
) -> tuple[Backend, ...]:
    """The engines that can be started here. None is imported: that would cost their memory here.

    Where accelerators are made up, an engine that runs on such does so, and not on the processor.
    """
    made_up: tuple[Vendor, ...] = tuple(sorted(set(simulated))) or ("cpu",)
    found: list[Backend] = []
    for name, profile in known(own).items():
        vendors = made_up if profile.made_up_devices else profile.install.vendors or profile.vendors
        with contextlib.suppress(NotInstalled):
            version = own[name].version if name in own else version_of(profile)
            found.append(Backend(engine=name, version=version, vendors=vendors, profile=profile.digest))
    there = {(each.engine, vendor) for each in found for vendor in each.vendors}
    for one in installed:
        if (one.engine, one.vendor) not in there:
            there.add((one.engine, one.vendor))
            found.append(
                Backend(engine=one.engine, version=one.version, vendors=(one.vendor,), profile=one.profile.digest)
            )
    return tuple(found[:MOST_BACKENDS])


def known(own: Mapping[EngineName, Environment], installed: Sequence[InstalledBackend] = ()) -> Profiles:
    """The engines that this node knows: built-in ones, and what packages here or in environments of their own bring."""
    here = {found.name: found for found in profiles() if not isinstance(found, NotInstalled)}
    here |= {one.engine: one.profile for one in reversed(installed)}
    return here | {name: environment.profile for name, environment in own.items()}


def engine_faults() -> tuple[str, ...]:
    """A sentence for each engine that a package here brings and that can't be used."""
    return tuple(str(found) for found in profiles() if isinstance(found, NotInstalled))


def builtins() -> tuple[str, ...]:
    """Names of the models that ship with this installation."""
    return tuple(name for name, module in BUILTINS.items() if importlib.util.find_spec(module) is not None)


def differs(now: Reported, before: Reported | None) -> bool:
    """Whether a report says something new. Free disk space that moved by less than a tenth does not, unless something
    has room now that had none, or the other way round; nor does since when an unused environment is so."""
    if before is None:
        return True
    old, new = before.hardware.disk_free, now.hardware.disk_free
    if old is not None and new is not None and abs(new - old) < old // 10:
        now = now.model_copy(update={"hardware": now.hardware.model_copy(update={"disk_free": old})})
    ours, theirs = now.installs, before.installs
    if ours is not None and theirs is not None:
        old, new = theirs.disk_free, ours.disk_free
        same = all(ours.lacks_room(recipe) == theirs.lacks_room(recipe) for recipe in ours.room)
        if same and old is not None and new is not None and abs(new - old) < old // 10:
            now = now.model_copy(update={"installs": ours.model_copy(update={"disk_free": old})})
    since = {each.name: each.unused_since for each in before.environments if each.unused_since is not None}
    same = tuple(
        each.model_copy(update={"unused_since": since[each.name]})
        if each.unused_since is not None and each.name in since
        else each
        for each in now.environments
    )
    return now.model_copy(update={"environments": same}) != before


def processors() -> int:
    """That this process may run on: of one NUMA node, where the worker was started on one."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return psutil.cpu_count() or 1


def _memory() -> int:
    """Bytes of memory, or of the control group's limit where that is less."""
    total = int(psutil.virtual_memory().total)
    with contextlib.suppress(OSError, ValueError):
        return min(total, int(_CGROUP_LIMIT.read_text()))
    return total


def _processor_name() -> str:
    with contextlib.suppress(OSError):
        for line in _CPU_INFO.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
