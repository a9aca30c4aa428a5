"""Installs engines: each into an environment of its own, at most a few at once, whole or not at all."""

import asyncio
import errno
import os
import platform
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft_contracts.backends import BackendVariant
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.values import EngineName, Vendor
from weft_contracts.signals import InstallSaid
from weft_runtime.logs import get_logger

from weft_worker_agent.domain.disk_room import lacks_room, tells_of_full_disk, was_full
from weft_worker_agent.domain.install_faults import InstallFault, fault_of, without_secrets
from weft_worker_agent.domain.install_plan import InstallPlan, InstallStep, plan
from weft_worker_agent.domain.install_progress import InstallProgress, heard
from weft_worker_agent.domain.node_progress import install_said
from weft_worker_agent.outbound.backends import environments, host_code, uv_process
from weft_worker_agent.outbound.backends.environments import InstalledBackend
from weft_worker_agent.outbound.backends.first_run import InstallFailed, first_run
from weft_worker_agent.outbound.backends.free_bytes import free_bytes
from weft_worker_agent.outbound.backends.sources import PackageSources
from weft_worker_agent.outbound.backends.system_needs import missing_need

_LOCK_AGAIN_S = 0.5
_log: Any = get_logger("weft.installer")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """How an installed engine's host is run."""

    python: str
    environment: Mapping[str, str]
    """Over what hosts inherit."""


@dataclass(slots=True)
class Install:
    """One that is under way, or that failed last."""

    plan: InstallPlan
    progress: InstallProgress
    began_at: float
    """Seconds since the epoch."""
    fault: InstallFault | None = None
    fetching_at: float | None = None
    """When the first of what it fetches was begun; seconds since the epoch."""


class Installer:
    """All installed and installing engines of this worker. Methods are called on the loop."""

    def __init__(
        self,
        folder: Path,
        sources: PackageSources,
        *,
        silence_s: float,
        at_once: int,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`silence_s`: one in which nothing moves for so long is given up; `changed`: called when one is done."""
        self._folder = folder
        self._sources = sources
        self._silence_s = silence_s
        self._turns = asyncio.Semaphore(at_once)
        self._changed = changed
        self._under_way: dict[str, asyncio.Task[InstalledBackend]] = {}
        self.installs: dict[str, Install] = {}
        """By the environment's name."""
        for name in environments.remove_half_made(folder):
            _log.info("half made backend removed", backend=name)
        self.installed = environments.installed(folder)
        self._code: Path | None = None

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
            return Interpreter(backend.python, await self._with_code())
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
            self.installs[wanted.name] = Install(wanted, InstallProgress(), time.time())
            task = self._under_way[wanted.name] = asyncio.create_task(self._install(wanted))
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
            _log.warning("backend not installed", backend=name, why=fault.reason, permanent=fault.permanent)
        self._changed()

    async def _install(self, wanted: InstallPlan) -> InstalledBackend:
        name = wanted.name
        async with self._turns:
            try:
                if (missing := await asyncio.to_thread(missing_need, wanted.variant)) is not None:
                    raise InstallFailed(missing)
                held = await self._locked(name)
                try:
                    there = await asyncio.to_thread(environments.read, self._folder / name)
                    return there if there is not None else await self._make(wanted, held)
                finally:
                    os.close(held)
            except (OSError, InstallFailed) as error:
                raise InstallFailed(self._fault(wanted, error)) from None

    def _fault(self, wanted: InstallPlan, error: OSError | InstallFailed) -> InstallFault:
        """What an install failed of. What was half made is gone by now."""
        engine, variant = wanted.engine, wanted.variant
        full = error.errno in (errno.ENOSPC, errno.EDQUOT) if isinstance(error, OSError) else False
        if full or tells_of_full_disk(str(error)):
            return was_full(engine, variant.version, variant.disk, free_bytes(self._folder), str(self._folder))
        if isinstance(error, InstallFailed):
            return error.fault
        words = without_secrets(error.strerror or str(error))
        return InstallFault(f"{engine} {variant.version} could not be installed: {words}")

    async def _locked(self, name: str) -> int:
        while (held := await asyncio.to_thread(environments.lock, self._folder, name)) is None:
            self._move(name, replace(self.installs[name].progress, phase="waiting"))
            await asyncio.sleep(_LOCK_AGAIN_S)
        return held

    async def _make(self, wanted: InstallPlan, held: int) -> InstalledBackend:
        """Make the environment under another name, and rename it when it is whole."""
        making = environments.making(self._folder, wanted.name)
        await asyncio.to_thread(environments.remove, making)
        variant = wanted.variant
        free = free_bytes(self._folder)
        if (short := lacks_room(wanted.engine, variant.version, variant.disk, free, str(self._folder))) is not None:
            raise InstallFailed(short)
        try:
            making.mkdir(mode=0o700, parents=True)
            cache, orders = making / "cache", making / "orders"
            orders.mkdir()
            python = making / "env" / "bin" / "python"
            self._move(wanted.name, InstallProgress("resolving"))
            uv = _uv()
            made = [uv, "venv", "--quiet", "--no-project", "--relocatable", "--python", sys.executable]
            await self._run(wanted, [*made, str(making / "env")], cache, held)
            for number, step in enumerate(wanted.steps):
                argv = [uv, "pip", "install", "--python", str(python), "--no-build"]
                argv += await asyncio.to_thread(_written, step, orders, number)
                await self._run(wanted, argv, cache, held)
            self._move(wanted.name, InstallProgress("checking"))
            profile = await first_run(wanted, python, await self._with_code())
            await asyncio.to_thread(environments.write_about, making / "env", wanted.engine, variant, profile)
            await asyncio.to_thread(os.rename, making / "env", self._folder / wanted.name)
            found = environments.read(self._folder / wanted.name)
            if found is None:
                raise InstallFailed(InstallFault(f"{wanted.engine} was installed and is no environment", local=True))
            return found
        finally:
            await asyncio.shield(asyncio.to_thread(environments.remove, making))

    async def _run(self, wanted: InstallPlan, argv: list[str], cache: Path, held: int) -> None:
        name, engine, version = wanted.name, wanted.engine, wanted.variant.version
        environment = self._sources.environment(cache, find_links=wanted.variant.find_links)

        def hear(line: str) -> None:
            self._move(name, heard(self.installs[name].progress, line))

        try:
            status, lines = await uv_process.run(argv, environment, hear=hear, silence_s=self._silence_s, held=held)
        except uv_process.Silent:
            phase = self.installs[name].progress.phase
            words = f"nothing moved for {self._silence_s:g} s while it was {phase}"
            raise InstallFailed(InstallFault(f"{engine} {version} could not be installed: {words}")) from None
        if status != 0:
            raise InstallFailed(fault_of(engine, version, status, lines))

    async def _with_code(self) -> dict[str, str]:
        if self._code is None or not self._code.is_dir():
            self._code = await asyncio.to_thread(host_code.bundle, self._folder)
        return {"PYTHONPATH": str(self._code), "PYTHONNOUSERSITE": "1"}

    def _move(self, name: str, progress: InstallProgress) -> None:
        install = self.installs[name]
        if install.progress.phase != progress.phase:
            _log.info("backend installing", backend=name, phase=progress.phase)
        install.progress = progress
        if progress.total and install.fetching_at is None:
            install.fetching_at = time.time()


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor} {sys.platform} {platform.machine()}"


def _uv() -> str:
    """Raises FileNotFoundError."""
    import uv  # here: its folder is looked for when something is installed

    return str(uv.find_uv_bin())


def _written(step: InstallStep, folder: Path, number: int) -> list[str]:
    """The flags of one step, with the files that they name."""
    flags: list[str] = ["--require-hashes"] if step.require_hashes else []
    for flag, lines in (
        ("--requirements", step.requirements),
        ("--constraints", step.constraints),
        ("--excludes", step.excludes),
    ):
        if lines:
            file = folder / f"{number}{flag}.txt"
            file.write_text("".join(f"{line}\n" for line in lines))
            flags += [flag, str(file)]
    return flags
