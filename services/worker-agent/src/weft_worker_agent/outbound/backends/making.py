"""Makes the environment of an engine: under another name, by one maker at a time, whole or not at all."""

import asyncio
import errno
import os
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft_runtime.logs import get_logger

from weft_worker_agent.domain.disk_room import lacks_room, tells_of_full_disk, was_full
from weft_worker_agent.domain.install_faults import InstallFault, fault_of, without_secrets
from weft_worker_agent.domain.install_plan import InstallPlan, InstallStep, build_lines
from weft_worker_agent.domain.install_progress import InstallProgress, heard
from weft_worker_agent.outbound.backends import build_tools, environments, host_code, uv_process
from weft_worker_agent.outbound.backends.environments import InstalledBackend
from weft_worker_agent.outbound.backends.first_run import InstallFailed, first_run
from weft_worker_agent.outbound.backends.free_bytes import free_bytes
from weft_worker_agent.outbound.backends.sources import PackageSources
from weft_worker_agent.outbound.backends.system_needs import missing_need

_LOCK_AGAIN_S = 0.5
_log: Any = get_logger("weft.installer")


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

    def move(self, progress: InstallProgress) -> None:
        """So far it is now."""
        if self.progress.phase != progress.phase:
            _log.info("backend installing", backend=self.plan.name, phase=progress.phase)
        self.progress = progress
        if progress.total and self.fetching_at is None:
            self.fetching_at = time.time()


class Making:
    """Makes environments in a folder."""

    def __init__(self, folder: Path, sources: PackageSources, *, silence_s: float, at_once: int, jobs: int = 1) -> None:
        """`silence_s`: one in which nothing moves for so long is given up; `at_once`: so many at most.

        `jobs`: compilers that a build runs at once.
        """
        self._folder = folder
        self._sources = sources
        self._silence_s = silence_s
        self._jobs = jobs
        self._turns = asyncio.Semaphore(at_once)
        self._code: Path | None = None

    async def make(self, install: Install) -> InstalledBackend:
        """The environment of an install's plan, which may be there by now. Raises InstallFailed."""
        wanted = install.plan
        async with self._turns:
            try:
                for lacks in (missing_need, build_tools.missing_tool):
                    if (missing := await asyncio.to_thread(lacks, wanted.variant)) is not None:
                        raise InstallFailed(missing)
                held = await self._locked(install)
                try:
                    there = await asyncio.to_thread(environments.read, self._folder / wanted.name)
                    return there if there is not None else await self._make(install, held)
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

    async def _locked(self, install: Install) -> int:
        while (held := await asyncio.to_thread(environments.lock, self._folder, install.plan.name)) is None:
            install.move(replace(install.progress, phase="waiting"))
            await asyncio.sleep(_LOCK_AGAIN_S)
        return held

    async def _make(self, install: Install, held: int) -> InstalledBackend:
        """Make the environment under another name, and rename it when it is whole."""
        wanted, variant = install.plan, install.plan.variant
        making = environments.making(self._folder, wanted.name)
        await asyncio.to_thread(environments.remove, making)
        free = free_bytes(self._folder)
        if (short := lacks_room(wanted.engine, variant.version, variant.disk, free, str(self._folder))) is not None:
            raise InstallFailed(short)
        try:
            making.mkdir(mode=0o700, parents=True)
            cache, orders = making / "cache", making / "orders"
            orders.mkdir()
            python = making / "env" / "bin" / "python"
            install.move(InstallProgress("resolving"))
            uv = _uv()
            made = [uv, "venv", "--quiet", "--no-project", "--relocatable", "--python", sys.executable]
            await self._run(install, [*made, str(making / "env")], cache, held)
            for number, step in enumerate(wanted.steps):
                argv = [uv, "pip", "install", "--python", str(python)]
                argv += await asyncio.to_thread(_written, step, orders, number)
                await self._run(install, argv, cache, held, step)
            install.move(InstallProgress("checking"))
            profile = await first_run(wanted, python, await self.code())
            await asyncio.to_thread(environments.write_about, making / "env", wanted.engine, variant, profile)
            await asyncio.to_thread(os.rename, making / "env", self._folder / wanted.name)
            found = environments.read(self._folder / wanted.name)
            if found is None:
                raise InstallFailed(InstallFault(f"{wanted.engine} was installed and is no environment", local=True))
            return found
        finally:
            await asyncio.shield(asyncio.to_thread(environments.remove, making))

    async def _run(
        self, install: Install, argv: list[str], cache: Path, held: int, step: InstallStep | None = None
    ) -> None:
        engine, variant = install.plan.engine, install.plan.variant
        environment = self._sources.environment(cache, find_links=variant.find_links)
        source = step.source if step is not None else None
        if source is not None:
            argv = [*build_tools.beside_others(), *argv]
            environment |= build_tools.build_environment(source, self._jobs)

        def hear(line: str) -> None:
            install.move(heard(install.progress, line))

        try:
            status, lines = await uv_process.run(
                argv, environment, hear=hear, silence_s=self._silence_s, held=held, builds=source is not None
            )
        except uv_process.Silent:
            words = f"nothing moved for {self._silence_s:g} s while it was {install.progress.phase}"
            raise InstallFailed(InstallFault(f"{engine} {variant.version} could not be installed: {words}")) from None
        if status != 0:
            raise InstallFailed(fault_of(engine, variant.version, status, lines))

    async def code(self) -> dict[str, str]:
        """The variables that bring this worker's own code of the host. Raises OSError."""
        if self._code is None or not self._code.is_dir():
            self._code = await asyncio.to_thread(host_code.bundle, self._folder)
        return {"PYTHONPATH": str(self._code), "PYTHONNOUSERSITE": "1"}


def _uv() -> str:
    """Raises FileNotFoundError."""
    import uv  # here: its folder is looked for when something is installed

    return str(uv.find_uv_bin())


def _written(step: InstallStep, folder: Path, number: int) -> list[str]:
    """The flags of one step, with the files that they name."""
    flags: list[str] = ["--require-hashes"] if step.require_hashes else []
    built: tuple[str, ...] = ()
    if step.source is None:
        flags.append("--no-build")
    else:
        flags += ["--no-deps", "--no-binary", step.built, "--require-build-hashes"]
        built = build_lines(step.source)
    for flag, lines in (
        ("--requirements", step.requirements),
        ("--constraints", step.constraints),
        ("--excludes", step.excludes),
        ("--build-constraints", built),
    ):
        if lines:
            file = folder / f"{number}{flag}.txt"
            file.write_text("".join(f"{line}\n" for line in lines))
            flags += [flag, str(file)]
    return flags
