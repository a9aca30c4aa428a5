"""Keeps the store as the log says: models' files that are wanted ahead of need come, and those that are to go go."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from weft_contracts.facts.machine import FilesFailed
from weft_runtime.logs import get_logger

from weft_worker_agent.domain.disk_room import MORE_BYTES
from weft_worker_agent.domain.file_upkeep import (
    FetchTries,
    after_failed_fetch,
    fetches_of,
    files_needed_still,
    forsaken,
    leaving,
    next_fetch,
    untold_failure,
)
from weft_worker_agent.domain.restarts import slow_wait_s
from weft_worker_agent.inbound.wake import Wake
from weft_worker_agent.outbound.files.begun_ahead import BegunAhead
from weft_worker_agent.outbound.files.model_fetches import FetchFailed, ModelFetches
from weft_worker_agent.projections.own_log import OwnLog

_IDLE_S = 2.0
_log: Any = get_logger("weft.files")


class FilesLoop:
    """The loop, and what it remembers: the tries of each wish. It fetches one model at a time, and none while a
    replica waits for another's fetch to end: what came of it stays for the next try."""

    def __init__(
        self,
        own: OwnLog,
        fetches: ModelFetches,
        used: Callable[[], Collection[str]],
        changed: Callable[[], None],
        begun: BegunAhead,
    ) -> None:
        """`used`: the `files_digest` of what assignments name or hosts run; `changed`: called when a fetch failed;
        `begun`: what came of a wish that is gone goes, too."""
        self._own = own
        self._fetches = fetches
        self._used = used
        self._changed = changed
        self._begun = begun
        self._tries: Mapping[str, FetchTries] = {}
        self._fetching: tuple[str, asyncio.Task[None]] | None = None
        self._left: dict[str, tuple[int, float]] = {}
        """Of what could not go yet, how often that was tried, and when it is tried next."""
        self._pins: dict[str, bool] = {}
        """What was said to the store of each model."""
        self.wake = Wake()

    async def run(self) -> None:
        """Look for ever."""
        try:
            while True:
                try:
                    await self.turn()
                except Exception:  # whatever it is, nothing else here ends of it
                    _log.exception("files are not looked after")
                await self.wake.wait(_IDLE_S)
        finally:
            if self._fetching is not None:
                self._fetching[1].cancel()

    def fault(self) -> FilesFailed | None:
        """What is to be said of a wish that can't be fulfilled."""
        return untold_failure(self._own.part.file_wishes, self._tries)

    async def turn(self) -> None:
        """One look, and what follows from it. Nothing goes or comes while the log isn't followed."""
        if not self._own.may_decide or self._own.part.removed:
            return
        wishes = self._own.part.file_wishes
        self._tries = fetches_of(wishes, self._tries)
        try:
            await self._fetch()
            await self._pin()
            await self._forget()
            for files in leaving(wishes, self._fetches.there, self._used()):
                await self._fetches.remove(files)
        except OSError as error:
            _log.warning("files are not fetched, kept or removed as they are to be", why=str(error))

    async def _fetch(self) -> None:
        if self._fetching is not None:
            files, task = self._fetching
            if files not in self._tries or self._fetches.held_up:
                task.cancel()
        elif not self._fetches.held_up and self._tries:
            free = await self._free()
            found = next_fetch(self._tries, self._fetches.there, time.monotonic(), free)
            if found is not None and self._may_begin(found):
                await asyncio.to_thread(self._begun.note, found.wanted)
                if self._may_begin(found):
                    self._fetching = found.wanted.files, asyncio.create_task(self._ahead(found))

    def _may_begin(self, tries: FetchTries) -> bool:
        wanted = tries.wanted.files in self._own.part.file_wishes.wanted
        return wanted and self._own.may_decide and self._fetching is None and not self._fetches.held_up

    async def _ahead(self, tries: FetchTries) -> None:
        files = tries.wanted.files
        try:
            await self._fetches.ahead(tries.wanted)
        except FetchFailed as failed:
            self._failed(tries, str(failed), await self._room_after() if failed.no_room else 0)
        except Exception as error:  # it is tried again like any other, and later each time
            _log.exception("files not fetched", files=files)
            self._failed(tries, f"an unexpected fault on this node ({type(error).__name__}): its agent's log has it", 0)
        finally:
            self._fetching = None
            self.wake.ring()

    def _failed(self, tries: FetchTries, reason: str, room: int) -> None:
        files = tries.wanted.files
        failed = after_failed_fetch(self._tries.get(files, tries), reason, room, time.monotonic())
        self._tries = {**self._tries, files: failed}
        self._changed()

    async def _free(self) -> int:
        """Bytes. Raises OSError."""
        return await asyncio.to_thread(lambda: self._fetches.free)

    async def _room_after(self) -> int:
        """What must be free before the next try; nothing where the disk doesn't tell."""
        try:
            return await self._free() + MORE_BYTES
        except OSError as error:
            _log.warning("the disk does not tell what is free", why=str(error))
            return 0

    async def _forget(self) -> None:
        """Raises OSError."""
        begun = await asyncio.to_thread(self._begun.all)
        going = forsaken(begun, self._own.part.file_wishes, self._fetches.there, self._used())
        self._left = {files: each for files, each in self._left.items() if files in going}
        for files, goes in going.items():
            tried, at = self._left.get(files, (0, 0.0))
            if self._fetching is not None and self._fetching[0] == files:
                continue  # it is being called off
            if goes and time.monotonic() < at:
                continue
            if not goes or await self._fetches.forget(begun[files], self._needed_still):
                await asyncio.to_thread(self._begun.drop, files)
            else:
                self._left[files] = tried + 1, time.monotonic() + slow_wait_s(tried + 1)

    def _needed_still(self) -> frozenset[tuple[str, int]]:
        part = self._own.part
        return files_needed_still((each.fact.spec for each in part.assignments.values()), part.file_wishes)

    async def _pin(self) -> None:
        wishes, there = self._own.part.file_wishes, self._fetches.there
        pins = {files: files in wishes.wanted for files in (*wishes.wanted, *wishes.retired) if files in there}
        for files, pinned in pins.items():
            if self._pins.get(files) != pinned:
                await self._fetches.pin(files, pinned=pinned)
        self._pins = pins
