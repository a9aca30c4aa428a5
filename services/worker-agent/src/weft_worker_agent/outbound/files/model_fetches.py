"""Fetches the files of models from their sources into this node's store: one transfer, however many wait for it."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prometheus_client import Counter
from weft_contracts.digest import files_digest
from weft_contracts.facts.node import FilesWanted
from weft_contracts.facts.source import FetchedSource, SourceFile, UploadSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ReplicaId
from weft_contracts.signals import FetchSaid
from weft_contracts.source_keys import told_source
from weft_files.blobs import Blob
from weft_files.faults import NoRoom, NotFetched
from weft_files.layout import LayoutTaken
from weft_files.store import Store
from weft_runtime.logs import get_logger
from weft_sources.refused import SourceRefused

from weft_worker_agent.domain.fetch_progress import FetchProgress, begun, fetch_said, finished, moved, placing
from weft_worker_agent.outbound.files.arrivals import NotSent
from weft_worker_agent.outbound.files.collecting import Collecting, anything
from weft_worker_agent.outbound.files.file_source import FileSource, wanted_file
from weft_worker_agent.outbound.files.near_files import NearFiles

_BYTES = Counter("weft_files_fetched_bytes", "Bytes of models' files that were brought here and verified")
_FETCHES = Counter("weft_files_fetches", "Fetches of models, by how they ended", ["outcome"])
for _outcome in ("ended", "failed"):
    _FETCHES.labels(_outcome)  # from the start: the first failure would else be no increase
_log: Any = get_logger("weft.fetches")


class FetchFailed(Exception):
    """No files; the message is a sentence for people. `no_room`: for want of room on this node's disk. `permanent`: no
    other try brings them."""

    def __init__(self, reason: str, *, no_room: bool = False, permanent: bool = False) -> None:
        super().__init__(reason)
        self.no_room = no_room
        self.permanent = permanent


@dataclass(slots=True)
class _Fetch:
    digest: str
    source: FetchedSource
    files: tuple[SourceFile, ...]
    progress: FetchProgress
    waiting: list[ReplicaId | None] = field(default_factory=list[ReplicaId | None])
    """None: it is wanted ahead of any replica's need."""
    begun: bool = False
    task: asyncio.Task[Path] | None = None
    arrived: set[str] = field(default_factory=set[str])
    """Names of the files that are here."""


class ModelFetches:
    """All that is fetched and that was fetched on this node. Methods are called on the loop."""

    def __init__(
        self,
        store: Store,
        source: FileSource,
        *,
        at_once: int = 2,
        most_bytes: int | None = None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`at_once`: models, without those that are sent; `most_bytes`: above so many those go that nothing needs;
        `changed`: one came or went."""
        self._store = store
        self._source = source
        self._collecting = Collecting(store, most_bytes) if most_bytes is not None else None
        self._changed = changed
        self._turns = asyncio.Semaphore(at_once)
        self._under_way: dict[str, _Fetch] = {}
        self.there: Mapping[str, int] = {
            each.name: sum(size for _, size in each.files.values()) for each in store.layouts()
        }
        """Bytes of the models that lie here, by `files_digest`."""

    def lacks(self, spec: ModelSpec) -> int | None:
        """Bytes that are to be fetched before it can start; None: it is here, or lies elsewhere than at a source."""
        if remote_source(spec) is None or files_digest(spec) in self.there:
            return None
        return sum(file.size for file in spec.files)

    async def want(self, spec: ModelSpec, replica: ReplicaId) -> Path:
        """The folder with the model's files, fetched if they are not here; who wants the same waits for the same.

        Raises FetchFailed. The last who waits takes the fetch with it when it is cancelled; what came of it stays for
        the next.
        """
        source = remote_source(spec)
        assert source is not None
        return await self._join(files_digest(spec), source, spec.files, replica)

    async def ahead(self, wanted: FilesWanted) -> Path:
        """The same for a model that the node is to have whether a replica needs it or not."""
        return await self._join(wanted.files, wanted.source, wanted.listed, None)

    @property
    def held_up(self) -> bool:
        """Whether a replica waits for its model until others are fetched."""
        waiting = (each for each in self._under_way.values() if not each.begun)
        return self._turns.locked() and any(who is not None for each in waiting for who in each.waiting)

    @property
    def free(self) -> int:
        """Bytes that could still be fetched."""
        return self._store.free()

    async def _join(
        self, digest: str, source: FetchedSource, files: tuple[SourceFile, ...], who: ReplicaId | None
    ) -> Path:
        fetch = self._under_way.get(digest)
        if fetch is None:
            fetch = _Fetch(digest, source, files, FetchProgress(sum(file.size for file in files)))
            task = fetch.task = asyncio.create_task(self._fetch(digest, fetch))
            self._under_way[digest] = fetch
            task.add_done_callback(lambda done: self._done(digest, done))
        task = fetch.task
        assert task is not None
        fetch.waiting.append(who)
        try:
            return await asyncio.shield(task)
        finally:
            fetch.waiting.remove(who)
            if not fetch.waiting and not task.done():
                task.cancel()
                if self._under_way.get(digest) is fetch:
                    del self._under_way[digest]

    def folder_of(self, digest: str) -> Path:
        """Where the files of a model lie that is here."""
        return self._store.layout_folder(digest)

    def sent(self, digest: str) -> tuple[SourceFile, ...] | None:
        """The files of a model that are waited for until somebody sends them, or are here; None: neither."""
        fetch = self._under_way.get(digest)
        if fetch is not None:
            return fetch.files if isinstance(fetch.source, UploadSource) else None
        layout = self._store.layout(digest) if digest in self.there else None
        if layout is None:
            return None
        here = layout.files.items()
        return tuple(SourceFile(name=name, size=size, checksum=f"blake3:{digits}") for name, (digits, size) in here)

    def has(self, digest: str, file: SourceFile) -> bool:
        """Whether one of those files is here."""
        fetch = self._under_way.get(digest)
        return digest in self.there if fetch is None else file.name in fetch.arrived

    def said(self) -> tuple[FetchSaid, ...]:
        """What is under way, for people."""
        now = time.monotonic()
        return tuple(each for fetch in self._under_way.values() for each in _said(fetch, now))

    async def collect(
        self, needed: Callable[[], Collection[str]], may_go: Callable[[str], Awaitable[bool]] = anything
    ) -> None:
        """Have go what nothing needs, the least used first, while there is more than may stay. `may_go` is asked of
        each before, a few at a time: what it refuses stays, and is not asked about again for some minutes."""
        if self._collecting is None:
            return
        gone = await self._collecting.collect(self.there, lambda: {*needed(), *self._under_way}, may_go)
        if gone:
            self.there = {digest: size for digest, size in self.there.items() if digest not in gone}
            _log.info("files removed", models=gone)
            self._changed()

    async def remove(self, digest: str) -> None:
        """Have a model go that nothing uses, unless it is being fetched. Raises OSError."""
        if digest in self._under_way or digest not in self.there:
            return
        self.there = {each: size for each, size in self.there.items() if each != digest}
        await asyncio.to_thread(self._store.remove, digest)
        _log.info("files removed", models=[digest])
        self._changed()

    async def forget(self, wanted: FilesWanted, needed: Callable[[], Container[tuple[str, int]]]) -> bool:
        """Have go what came of a model that is fetched ahead no more, but for files that others need, by checksum and
        size; that is looked at before each. False while something of it is left that is to go. Raises OSError."""
        gone = True
        for file in wanted.listed:
            if wanted.files in self._under_way:
                return False
            known = file.checksum, file.size
            coming = (each for fetch in self._under_way.values() for each in fetch.files)
            if known in needed() or any(known == (each.checksum, each.size) for each in coming):
                continue
            gone = await self._source.forget(wanted.source, file) and gone
        if gone:
            _log.info("what came of files is removed", files=wanted.files)
        return gone and wanted.files not in self._under_way

    async def pin(self, digest: str, *, pinned: bool) -> None:
        """Whether a model is kept by all agents that share the store. Raises OSError."""
        await asyncio.to_thread(self._store.pin if pinned else self._store.unpin, digest)

    async def close(self) -> None:
        """End what is under way; what is half here is continued by the next agent."""
        tasks = [fetch.task for fetch in self._under_way.values() if fetch.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _fetch(self, digest: str, fetch: _Fetch) -> Path:
        said, files = told_source(fetch.source), fetch.files
        if not files:
            raise FetchFailed(f"{said} names no files: deploy the model again")
        async with contextlib.nullcontext() if isinstance(fetch.source, UploadSource) else self._turns:
            fetch.begun = True
            began = time.monotonic()
            try:
                blobs = await asyncio.to_thread(self._here, files)
                missing = [file for file in files if file.name not in blobs]
                near = self._source.near(digest)
                came = 0
                with self._store.reserve(sum(file.size for file in missing)) as room:
                    for file in files:
                        if file in missing:
                            came += file.size
                            room.filled(came)  # the file's own transfer reserves for it
                        blobs[file.name] = await self._one(digest, fetch, file, near)
                    fetch.progress = placing(fetch.progress)
                path = await asyncio.to_thread(self._lay_out, digest, blobs)
            except (NotFetched, SourceRefused) as error:
                raise FetchFailed(f"{said} could not be fetched: {error}") from None
            except NotSent as error:
                raise FetchFailed(str(error)) from None
            except NoRoom as error:
                raise FetchFailed(f"{said} could not be fetched: {error}", no_room=True) from None
            except (OSError, ValueError) as error:
                raise FetchFailed(f"{said} could not be fetched: {error}") from None
            seconds = round(time.monotonic() - began, 1)
            _log.info("files fetched", source=said, bytes=fetch.progress.total, seconds=seconds)
            return path

    def _here(self, files: tuple[SourceFile, ...]) -> dict[str, Blob]:
        """The blobs of those files that are here, each checked."""
        found = ((file.name, self._store.find(wanted_file(file))) for file in files)
        return {name: blob for name, blob in found if blob is not None}

    def _lay_out(self, digest: str, blobs: Mapping[str, Blob]) -> Path:
        try:
            return self._store.lay_out(digest, blobs)
        except LayoutTaken:  # what tells no content may have changed at its source, and a layout may be damaged
            self._store.remove(digest)
            return self._store.lay_out(digest, blobs)

    async def _one(self, digest: str, fetch: _Fetch, file: SourceFile, near: NearFiles | None) -> Blob:
        fetch.progress = begun(fetch.progress, file.name, time.monotonic())

        def came(bytes: int) -> None:
            giver = near.giver if near is not None else ""
            fetch.progress = moved(fetch.progress, bytes, time.monotonic(), giver)

        ahead = all(who is None for who in fetch.waiting)
        blob = await self._source.fetch(digest, fetch.source, file, came, near, ahead=ahead)
        fetch.arrived.add(file.name)
        fetch.progress = finished(fetch.progress, file.size)
        _BYTES.inc(file.size)
        return blob

    def _done(self, digest: str, task: asyncio.Task[Path]) -> None:
        fetch = self._under_way.get(digest)
        if fetch is not None and fetch.task is task:
            del self._under_way[digest]
        if task.cancelled():
            return
        _FETCHES.labels("failed" if task.exception() is not None else "ended").inc()
        if (error := task.exception()) is None:
            self.there = {**self.there, digest: fetch.progress.total if fetch is not None else 0}
        else:
            _log.warning("files not fetched", files=digest, why=str(error))
        self._changed()


def remote_source(spec: ModelSpec) -> FetchedSource | None:
    """The source that a spec's files come from over the network; None: they don't."""
    return spec.source if isinstance(spec.source, FetchedSource) else None


def _said(fetch: _Fetch, now: float) -> list[FetchSaid]:
    replicas = tuple(who for who in fetch.waiting if who is not None)
    return fetch_said(fetch.digest, replicas, fetch.source, fetch.progress, now)
