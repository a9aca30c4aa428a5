"""Follows the log: what ready replicas offer and nobody has verified yet is fetched, kept and said."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from weft_contracts import subjects
from weft_contracts.commit import Commit, Guard
from weft_contracts.facts.artifact import Refused, Verified
from weft_contracts.ids import ArtifactId
from weft_eventlog import Conflict, EventLog, LogUnavailable, Projection
from weft_files import NoRoom
from weft_runtime.decider import told
from weft_runtime.health import Health
from weft_runtime.logs import get_logger

from weft_metadata_cache.domain.due_fetches import Fetch, Limits, State, due_fetches
from weft_metadata_cache.outbound.fetch import Fetcher, NotServed
from weft_metadata_cache.outbound.store import Store

AT_ONCE = 4
"""Files that are fetched side by side."""
TICK = 1.0
_AWAY = 5.0
"""Seconds until a file is tried again when the log or the store was away."""
_MOST_REASON = 2000
"""Characters."""
_log: Any = get_logger("weft.collecting")


class Collector:
    """One loop over what is wanted; each file has at most one task. Run `run` as a root task."""

    def __init__(
        self,
        log: EventLog,
        projection: Projection,
        state: State,
        store: Store,
        fetcher: Fetcher,
        leads: Callable[[], bool],
        limits: Limits,
        health: Health,
    ) -> None:
        self._log = log
        self._projection = projection
        self._state = state
        self._store = store
        self._fetcher = fetcher
        self._leads = leads
        self._limits = limits
        self._health = health
        self._busy: set[ArtifactId] = set()

    async def run(self) -> None:
        """Collect for ever. Ends by cancellation, and then nothing half-fetched is left."""
        await self._projection.caught_up.wait()
        async with self._fetcher, asyncio.TaskGroup() as tasks:
            while True:
                self._report()
                if self._leads() and self._projection.halted is None:
                    self._start(tasks)
                await self._projection.moved(TICK)

    def _report(self) -> None:
        """Say through health what keeps this service from collecting."""
        self._health.set("projection", self._projection.halted)
        self._health.set("suspect", told(self._projection.suspects), own=False)

    def _start(self, tasks: asyncio.TaskGroup) -> None:
        for fetch in due_fetches(self._state, time.time(), self._limits):
            if len(self._busy) == AT_ONCE:
                return
            if fetch.id not in self._busy and subjects.artifact(fetch.id) not in self._projection.suspects:
                self._busy.add(fetch.id)
                tasks.create_task(self._collect(fetch))

    async def _collect(self, fetch: Fetch) -> None:
        """One try at one file. It stays busy until its outcome is folded."""
        try:
            outcome = await self._outcome(fetch)
            aggregate = subjects.artifact(fetch.id)
            commit = Commit(aggregate, (outcome,), Guard(aggregate, fetch.sequence), fetch.cause)
            (sequence,) = await self._log.append(commit)
            _log.info("metadata file", file=fetch.file.name, model=fetch.model, node=fetch.node, outcome=outcome.type)
            await self._projection.wait_for(sequence, timeout=10.0)
        except Conflict as conflict:
            _log.info("lost to another instance", conflict=str(conflict))
            await asyncio.sleep(TICK)
        except (LogUnavailable, TimeoutError, NoRoom, OSError) as error:
            _log.warning("can't keep a file, or say so", file=fetch.file.name, error=str(error))
            await asyncio.sleep(_AWAY)
        finally:
            self._busy.discard(fetch.id)

    async def _outcome(self, fetch: Fetch) -> Verified | Refused:
        if fetch.fault is not None:
            return _refused(fetch, fetch.fault)
        if not await self._store.holds(fetch.file):
            try:
                blob = await self._fetcher.whole(fetch)
            except NotServed as error:
                return _refused(fetch, str(error)[:_MOST_REASON])
            try:
                await self._store.keep(fetch.file, blob.path)
            finally:
                await self._fetcher.drop(blob)
        return Verified(model=fetch.model, revision=fetch.revision, file=fetch.file)


def _refused(fetch: Fetch, reason: str) -> Refused:
    return Refused(model=fetch.model, revision=fetch.revision, file=fetch.file, node=fetch.node, reason=reason)
