"""This worker's installed engines: who wants one gets it, whoever runs in one holds it, what is unused goes."""

import asyncio
import os
import platform
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft_contracts.backends import BackendVariant
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.values import EngineName, Vendor
from weft_contracts.signals import InstallSaid
from weft_runtime.logs import get_logger

from weft_worker_agent.domain.install_faults import InstallFault
from weft_worker_agent.domain.install_plan import InstallPlan, plan
from weft_worker_agent.domain.install_progress import InstallProgress
from weft_worker_agent.domain.node_progress import install_said
from weft_worker_agent.outbound.backends import environments, host_code
from weft_worker_agent.outbound.backends.environments import InstalledBackend
from weft_worker_agent.outbound.backends.first_run import InstallFailed
from weft_worker_agent.outbound.backends.free_bytes import free_bytes
from weft_worker_agent.outbound.backends.making import Install, Making
from weft_worker_agent.outbound.backends.sources import PackageSources

_LOCK_AGAIN_S = 0.5
_log: Any = get_logger("weft.installer")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """How an installed engine's host is run."""

    python: str
    environment: Mapping[str, str]
    """Over what hosts inherit."""


class Installer:
    """All installed and installing engines of this worker. Methods are called on the loop."""

    def __init__(
        self,
        folder: Path,
        sources: PackageSources,
        *,
        silence_s: float,
        at_once: int,
        jobs: int = 1,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`silence_s`, `at_once`, `jobs`: see `Making`; `changed`: called when one is done."""
        self._folder = folder
        self._making = Making(folder, sources, silence_s=silence_s, at_once=at_once, jobs=jobs)
        self._changed = changed
        self._under_way: dict[str, asyncio.Task[InstalledBackend]] = {}
        self.installs: dict[str, Install] = {}
        """By the environment's name."""
        self.room: dict[str, int] = {}
        """Bytes that must be free before another try, by the recipe's digest, of what the disk had too little for."""
        for name in environments.remove_half_made(folder):
            _log.info("half made backend removed", backend=name)
        self.installed = environments.installed(folder)

    @property
    def free(self) -> int | None:
        """Bytes free on the disk of its folder; None: not known."""
        return free_bytes(self._folder)

    def find(self, engine: EngineName, vendor: Vendor) -> InstalledBackend | None:
        """The newest environment of an engine for a vendor's devices."""
        return next((one for one in self.installed if (one.engine, one.vendor) == (engine, vendor)), None)

    async def interpreter(self, backend: InstalledBackend) -> Interpreter:
        """How the backend's hosts are run: with this worker's own code of the host. Raises InstallFailed."""
        try:
            return Interpreter(backend.python, await self._making.code())
        except OSError as error:
            words = f"{self._folder} takes no code of the engine host ({error.strerror or error})"
            raise InstallFailed(InstallFault(words)) from None

    async def want(self, engine: EngineName, variant: BackendVariant) -> InstalledBackend:
        """The engine's environment, made if it is not there; who wants the same waits for the same.

        Raises InstallFailed. An install goes on when those who waited for it are cancelled.
        """
        wanted = self._plan(engine, variant)
        there = next((one for one in self.installed if one.name == wanted.name), None)
        if there is not None:
            return there if there.recipe else await self._noted(there, variant)
        task = self._under_way.get(wanted.name)
        if task is None:
            self.room.pop(variant.digest, None)
            install = self.installs[wanted.name] = Install(wanted, InstallProgress(), time.time())
            task = self._under_way[wanted.name] = asyncio.create_task(self._making.make(install))
            task.add_done_callback(lambda done: self._done(wanted.name, done))
        return await asyncio.shield(task)

    def name_of(self, engine: EngineName, variant: BackendVariant) -> str:
        """Of the environment that a variant makes here."""
        return self._plan(engine, variant).name

    def has(self, engine: EngineName, variant: BackendVariant) -> bool:
        """Whether what a variant makes is there."""
        name = self.name_of(engine, variant)
        return any(one.name == name for one in self.installed)

    def hold(self, name: str) -> int | None:
        """Keep an environment from being removed, until the descriptor is closed; None: it is gone, or is going."""
        try:
            held = environments.lock(self._folder, name, shared=True)
        except OSError:
            return None
        if held is not None and environments.read(self._folder / name) is None:
            os.close(held)
            held = None
        if held is None:
            self.installed = tuple(one for one in self.installed if one.name != name)
        return held

    async def look(self, used: Collection[str]) -> None:
        """Note what is used, and see what others who share the folder have made and removed."""
        await asyncio.to_thread(environments.mark_used, self._folder, used)
        before = self.installed
        found = await asyncio.to_thread(environments.installed, self._folder)
        if self.installed is before:  # else it was looked at too early
            self.installed = found

    async def remove(self, name: str) -> bool:
        """Remove an environment that nothing uses; False where something does, or it can't be removed now."""
        try:
            removed = await asyncio.to_thread(environments.remove_unused, self._folder, name)
        except OSError as error:
            _log.warning("backend not removed", backend=name, why=error.strerror or str(error))
            return False
        if removed:
            self.installed = tuple(one for one in self.installed if one.name != name)
            _log.info("backend removed", backend=name)
        return removed

    async def _noted(self, there: InstalledBackend, variant: BackendVariant) -> InstalledBackend:
        """One that was made before its recipe was noted in it."""
        path, profile = self._folder / there.name, None if there.engine in BUILTIN else there.profile
        try:
            await asyncio.to_thread(environments.write_about, path, there.engine, variant, profile)
        except OSError as error:
            raise InstallFailed(InstallFault(f"{path} takes no file ({error.strerror or error})")) from None
        noted = environments.read(path) or there
        self.installed = tuple(noted if one.name == there.name else one for one in self.installed)
        return noted

    def _plan(self, engine: EngineName, variant: BackendVariant) -> InstallPlan:
        return plan(engine, variant, _python(), host_code.requirements())

    def said(self, overdue_s: float) -> tuple[InstallSaid, ...]:
        """What is under way, for people; from so many seconds on an install is overdue."""
        now = time.time()
        under_way = [install for name, install in self.installs.items() if name in self._under_way]
        return tuple(
            install_said(
                each.plan.engine,
                each.plan.variant.version,
                each.plan.variant.vendor,
                each.progress,
                since_s=now - each.began_at,
                fetching_s=now - (each.fetching_at or now),
                overdue_s=overdue_s,
            )
            for each in under_way
        )

    async def close(self) -> None:
        """End what is under way; nothing half made stays."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _done(self, name: str, task: asyncio.Task[InstalledBackend]) -> None:
        self._under_way.pop(name, None)
        install = self.installs[name]
        if task.cancelled():
            del self.installs[name]
        elif (error := task.exception()) is None:
            del self.installs[name]
            self.installed = (task.result(), *(one for one in self.installed if one.name != name))
            _log.info("backend installed", backend=name, seconds=round(time.time() - install.began_at, 1))
        else:
            fault = error.fault if isinstance(error, InstallFailed) else InstallFault(str(error))
            install.fault = fault
            if fault.room:
                self.room[install.plan.variant.digest] = fault.room
            _log.warning("backend not installed", backend=name, why=fault.reason, permanent=fault.permanent)
        self._changed()


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor} {sys.platform} {platform.machine()}"
