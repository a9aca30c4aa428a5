"""Keeps what is installed as the log says: what is wanted ahead of need comes, and what is needed no more goes."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from weft_contracts.facts.machine import InstallFailed
from weft_contracts.facts.values import InstalledBackend as ToldBackend
from weft_runtime.logs import get_logger

from weft_worker_agent.domain.backend_upkeep import (
    AheadTries,
    after_failure,
    is_due,
    removable,
    tries_of,
    untold_fault,
)
from weft_worker_agent.inbound.wake import Wake
from weft_worker_agent.outbound.backends.environments import InstalledBackend
from weft_worker_agent.outbound.backends.first_run import InstallFailed as CouldNotInstall
from weft_worker_agent.outbound.backends.installer import Installer
from weft_worker_agent.outbound.processes.hosts import Hosts
from weft_worker_agent.projections.own_log import OwnLog

_IDLE_S = 2.0
_LOOK_S = 60.0
_log: Any = get_logger("weft.backends")


class BackendsLoop:
    """The loop, and what it remembers: the tries of each wish."""

    def __init__(
        self, own: OwnLog, hosts: Hosts, installer: Installer, keep_s: float, changed: Callable[[], None]
    ) -> None:
        """`keep_s`: how long an environment that no recipe names and nothing uses stays; `changed`: called when what
        is there, or what uses it, is otherwise than before."""
        self._own = own
        self._hosts = hosts
        self._installer = installer
        self._keep_s = keep_s
        self._changed = changed
        self._tries: Mapping[str, AheadTries] = {}
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._looked_at = float("-inf")
        self._shown: tuple[ToldBackend, ...] = ()
        self.wake = Wake()

    async def run(self) -> None:
        """Look for ever."""
        try:
            while True:
                await self.turn()
                await self.wake.wait(_IDLE_S)
        finally:
            for task in self._under_way.values():
                task.cancel()

    async def turn(self) -> None:
        """One look, and what follows from it."""
        if time.monotonic() >= self._looked_at + _LOOK_S:
            self._looked_at = time.monotonic()
            await self._installer.look(self._hosts.environments)
        if self._own.may_decide and not self._own.part.removed:
            self._tries = tries_of(self._own.part.wishes, self._tries)
            self._install()
            await self._remove()
        there = told(self._installer.installed, self._hosts.environments)
        if told_apart(there) != told_apart(self._shown):
            before = {each.name for each in self._shown if each.unused_since is None}
            await self._installer.look(before | self._hosts.environments)  # what has just ended was used until now
            self._shown = told(self._installer.installed, self._hosts.environments)
            self._changed()

    def fault(self) -> InstallFailed | None:
        """What is to be said of a wish that can't be fulfilled."""
        return untold_fault(self._own.part.wishes, self._tries)

    def _install(self) -> None:
        now, free = time.monotonic(), self._installer.free if self._tries else None
        for key, tries in self._tries.items():
            wanted = tries.wanted
            there = self._installer.has(wanted.engine, wanted.variant)
            if not there and key not in self._under_way and is_due(tries, now, free):
                self._under_way[key] = asyncio.create_task(self._ahead(key, tries))

    async def _ahead(self, key: str, tries: AheadTries) -> None:
        try:
            await self._installer.want(tries.wanted.engine, tries.wanted.variant)
        except CouldNotInstall as failed:
            before = self._tries.get(key, tries)
            if before.wanted == tries.wanted:
                self._tries = {**self._tries, key: after_failure(before, failed.fault, time.monotonic())}
                self._changed()
        finally:
            del self._under_way[key]
            self.wake.ring()

    async def _remove(self) -> None:
        part = self._own.part
        wanted = [(each.engine, each.variant) for each in part.wishes.wanted.values()]
        assigned = [each.fact for each in part.assignments.values()]
        wanted += [(fact.spec.engine, fact.backend) for fact in assigned if fact.backend is not None]
        needed = {self._installer.name_of(*each) for each in wanted}
        there = told(self._installer.installed, self._hosts.environments)
        for name in removable(part.wishes, there, needed, time.time(), self._keep_s):
            if await self._installer.remove(name):
                self._looked_at = float("-inf")


def told(installed: tuple[InstalledBackend, ...], used: frozenset[str]) -> tuple[ToldBackend, ...]:
    """What is installed, as the node reports it."""
    return tuple(
        ToldBackend(
            name=one.name,
            engine=one.engine,
            vendor=one.vendor,
            version=one.version,
            recipe=one.recipe,
            bytes=one.size,
            unused_since=None if one.name in used else round(one.used_at, 1),
        )
        for one in installed
    )


def told_apart(there: tuple[ToldBackend, ...]) -> frozenset[tuple[str, str, bool]]:
    """What makes a report: which there are, and which are used. Since when one isn't, others who share it may move."""
    return frozenset((each.name, each.recipe, each.unused_since is None) for each in there)
