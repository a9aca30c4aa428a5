"""Puts the files that this node runs or is to have into the mesh's store, one at a time, beside everything else."""

import random
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from prometheus_client import Counter
from weft_contracts.digest import files_digest
from weft_contracts.facts.node import FilesWanted
from weft_contracts.facts.source import SourceFile
from weft_contracts.facts.values import ModelSpec
from weft_files.wanted import Wanted
from weft_runtime.logs import get_logger
from weft_sources.refused import SourceAway, SourceRefused

from weft_worker_agent.domain.storing import Put, after_failed_put, after_put, next_put, puts_of
from weft_worker_agent.inbound.wake import Wake
from weft_worker_agent.outbound.files.file_source import wanted_file
from weft_worker_agent.outbound.files.mesh_store import MeshStore
from weft_worker_agent.outbound.files.model_fetches import remote_source

_IDLE_S: Final = 5.0
_STORED = Counter("weft_files_stored", "Files that were to be in the mesh's store, by what came of it", ["result"])
_log: Any = get_logger("weft.store")


class StoringLoop:
    """The loop, and what it remembers of each file's way there; a new agent looks at all of them anew. What fails is a
    log line and a count, and keeps nothing else up."""

    def __init__(
        self,
        store: MeshStore,
        expected: Callable[[], Iterable[ModelSpec | FilesWanted]],
        there: Callable[[], Mapping[str, int]],
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`expected`: what this node was given to run or to have; `there`: the models that lie here, by their
        `files_digest`."""
        self._store = store
        self._expected = expected
        self._there = there
        self._clock = clock
        self._chance = chance
        self._puts: dict[str, Put] = {}
        self.wake = Wake()

    async def run(self) -> None:
        """Look for ever."""
        while True:
            try:
                more = await self.turn()
            except Exception:  # whatever it is, nothing else here ends of it
                _log.exception("files are not put into the mesh's store")
                more = False
            if not more:
                await self.wake.wait(_IDLE_S)

    async def turn(self) -> bool:
        """One look, and at most one file; whether there was one to put."""
        here = self._here()
        fresh = {checksum: wrong for checksum, wrong in self._store.fresh.items() if checksum in here}
        self._puts = puts_of(here, fresh, self._puts, self._clock(), self._chance)
        for checksum in fresh:
            self._store.seen(checksum)
        checksum = next_put(self._puts, self._clock())
        if checksum is None:
            return False
        self._puts[checksum] = await self._put(here[checksum], self._puts[checksum])
        return True

    async def _put(self, file: Wanted, put: Put) -> Put:
        began = self._clock()
        try:
            result = await self._store.put(file, over=put.over)
        except (SourceRefused, OSError) as error:
            lasting = isinstance(error, SourceRefused) and not isinstance(error, SourceAway)
            after = after_failed_put(put, self._clock(), lasting=lasting)
            _STORED.labels("failed").inc()
            _log.warning("a file was not put into the mesh's store", file=file.name, why=str(error), left=after.ended)
            return after
        except Exception as error:  # whatever it is, nothing else here ends of it
            _STORED.labels("failed").inc()
            _log.exception("a file was not put into the mesh's store", file=file.name, why=type(error).__name__)
            return after_failed_put(put, self._clock(), lasting=False)
        if result != "gone":
            _STORED.labels(result).inc()
        if result == "put":
            seconds = round(self._clock() - began, 1)
            _log.info("a file was put into the mesh's store", file=file.name, bytes=file.size, seconds=seconds)
        return after_put(put)

    def _here(self) -> dict[str, Wanted]:
        """The files of what is expected and lies here whole, by their checksum; a file may be of several models."""
        there = self._there()
        here: dict[str, Wanted] = {}
        for each in self._expected():
            files, listed = (each.files, each.listed) if isinstance(each, FilesWanted) else _of_spec(each)
            if files in there:
                here |= {file.checksum: wanted_file(file) for file in listed if file.checksum}
        return here


def _of_spec(spec: ModelSpec) -> tuple[str, tuple[SourceFile, ...]]:
    """Its digest and its files; none of what lies on workers' own disks."""
    return (files_digest(spec), spec.files) if remote_source(spec) is not None else ("", ())
