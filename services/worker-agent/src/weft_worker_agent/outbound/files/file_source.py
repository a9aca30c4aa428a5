"""Fetches one file of a source into the store, from wherever it may be asked for, best first."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final

from weft_contracts.facts.source import FetchedSource, RemoteSource, SourceFile, UploadSource
from weft_contracts.source_keys import told_source
from weft_files.address import Address
from weft_files.blobs import Blob
from weft_files.bounds import Bounds
from weft_files.checksum import Checksum
from weft_files.faults import NotFetched, Refused
from weft_files.incoming import Incoming
from weft_files.resolver import Resolver
from weft_files.store import Store
from weft_files.wanted import Wanted
from weft_runtime.logs import get_logger
from weft_sources.listing import addresses, local_file
from weft_sources.refused import SourceRefused
from weft_sources.settings import SourceSettings

from weft_worker_agent.outbound.files.arrivals import Arrivals
from weft_worker_agent.outbound.files.mesh_store import MeshStore
from weft_worker_agent.outbound.files.near_files import NearFiles
from weft_worker_agent.outbound.files.peers import Peers
from weft_worker_agent.outbound.files.source_secrets import SourceSecrets

_BUFFER: Final = 1 << 20
_PEER_TRIES: Final = 8
"""Fetches of a file that was sent from nodes that have it by the log, before its host is told; each is long."""
_log: Any = get_logger("weft.fetches")


class FileSource:
    """Of one store. Nothing fetches beside it."""

    def __init__(
        self,
        store: Store,
        secrets: SourceSecrets,
        arrivals: Arrivals,
        peers: Peers | None = None,
        bounds: Bounds | None = None,
        mesh_store: MeshStore | None = None,
    ) -> None:
        """`arrivals`: what brings files here that are sent. `peers`: other nodes, which are asked before the source;
        None: nobody tells of any. `mesh_store`: asked between the two; None: the mesh has none."""
        self._store = store
        self._arrivals = arrivals
        trust = peers.trust if peers is not None else None
        self._resolver = Resolver(store, secrets.settings.reach, bounds=bounds, trust=trust)
        self._secrets = secrets
        self._peers = peers
        self._mesh_store = mesh_store

    def near(self, files: str) -> NearFiles | None:
        """Who else is asked, in one fetch of a model's files (their digest); None: nobody."""
        store = self._mesh_store.said if self._mesh_store is not None else ""
        return NearFiles(self._peers, files, store=store) if self._peers is not None else None

    async def fetch(
        self,
        files: str,
        source: FetchedSource,
        file: SourceFile,
        came: Callable[[int], None],
        near: NearFiles | None = None,
        *,
        ahead: bool = False,
    ) -> Blob:
        """The blob of a file of the model of this `files_digest`; `came` is told how many of its bytes are here, on the
        loop. `near`: of its model's fetch. `ahead`: no replica needs it, so nobody will send it here.

        Cancelled, it ends the transfer; what came stays for the next. Raises NotFetched, NotSent, NoRoom and
        SourceRefused.
        """
        settings, wanted = self._secrets.settings, wanted_file(file)
        if (here := await asyncio.to_thread(self._near, source, file, wanted, settings)) is not None:
            return here
        if isinstance(source, UploadSource):
            return await self._sent(files, wanted, came, near, ahead=ahead)
        beyond = _Beyond(self._secrets, self._mesh_store, source, file, wanted)
        try:
            if near is not None and wanted.tells_content:
                blob = await near.fetch(self._resolver, wanted, beyond.where, came)
            elif where := await beyond.where():
                blob = await self._resolver.fetch(wanted, where, came)
            else:
                folder = settings.hub_folder
                raise NotFetched(f"{file.name} is not in {folder}, and this node is offline (HF_HUB_OFFLINE)")
        except NotFetched as error:
            raise beyond.told(error) from None
        self._stored(wanted, near)
        return blob

    async def forget(self, source: FetchedSource, file: SourceFile) -> bool:
        """Have go what came of a file that nobody here wants any more: see `Store.forget`. Raises OSError."""
        wanted, where = wanted_file(file), tuple[Address, ...]()
        if not wanted.tells_content and not isinstance(source, UploadSource):
            with contextlib.suppress(SourceRefused):  # then nothing came from there either
                where = await asyncio.to_thread(addresses, source, file, self._secrets.settings)
        return await asyncio.to_thread(self._store.forget, wanted, where)

    def close(self) -> None:
        """Begin no more."""
        self._resolver.close()

    def _stored(self, wanted: Wanted, near: NearFiles | None) -> None:
        """What no other node gave is to be in the mesh's store."""
        if self._mesh_store is not None:
            lied = near is not None and near.store_lied
            if lied or near is None or near.giver in ("", self._mesh_store.said):
                self._mesh_store.came(wanted, wrong=lied)

    async def _from_store(self, wanted: Wanted, came: Callable[[int], None], near: NearFiles | None) -> Blob | None:
        """A file that has no source, where the mesh's store has it."""
        if self._mesh_store is None:
            return None
        address, _ = await self._mesh_store.where(wanted)
        if address is None:
            return None
        try:
            if near is not None:
                near.begin()
            return await self._resolver.fetch(wanted, [address], came, near)
        except NotFetched as error:
            _log.warning("a file that was sent does not come from the mesh's store", file=wanted.name, why=str(error))
            if near is not None and near.store_lied:
                self._mesh_store.came(wanted, wrong=True)
            return None

    async def _sent(
        self, files: str, wanted: Wanted, came: Callable[[int], None], near: NearFiles | None, *, ahead: bool
    ) -> Blob:
        """From whoever sends it; from another node, where one has it by then."""

        async def nowhere() -> tuple[Address, ...]:
            return ()

        tries = 0
        while True:
            if near is not None and await near.anybody_has_them():
                near.begin()
                try:
                    return await near.fetch(self._resolver, wanted, nowhere, came)
                except NotFetched as error:
                    tries += 1
                    _log.info("a file that was sent does not come from other nodes", file=wanted.name, why=str(error))
                    if tries >= _PEER_TRIES:
                        raise
            if (stored := await self._from_store(wanted, came, near)) is not None:
                return stored
            if ahead:
                raise NotFetched(f"{wanted.name} was sent to the mesh, and no node that can be asked has it now")
            blob = await self._arrivals.wait(files, wanted, came, near.anybody_has_them if near is not None else None)
            if blob is not None:
                if self._mesh_store is not None:
                    self._mesh_store.came(wanted)
                return blob

    def _near(self, source: FetchedSource, file: SourceFile, wanted: Wanted, settings: SourceSettings) -> Blob | None:
        """The blob of a file that huggingface_hub laid on this machine, copied and verified; None: there is none, or
        it is another. Raises NoRoom."""
        if (found := self._store.find(wanted)) is not None:
            return found
        if isinstance(source, UploadSource) or not wanted.tells_content:
            return None
        path = local_file(source, file, settings)
        if path is None:
            return None
        try:
            with Incoming(self._store, wanted) as incoming, path.open("rb") as read:
                while came := read.read(_BUFFER):
                    incoming.write(came)
                return incoming.finish()
        except (OSError, Refused) as error:
            _log.warning("a file of the hub's folder is not used", path=str(path), why=str(error))
            return None


def wanted_file(file: SourceFile) -> Wanted:
    """A source's file as the store and the resolver know it."""
    return Wanted(file.name, file.size, Checksum.parse(file.checksum) if file.checksum else None, file.size)


class _Beyond:
    """Where a file is asked for beyond the nodes: the mesh's store, and then its source."""

    def __init__(
        self,
        secrets: SourceSecrets,
        mesh_store: MeshStore | None,
        source: RemoteSource,
        file: SourceFile,
        wanted: Wanted,
    ) -> None:
        self._secrets = secrets
        self._mesh_store = mesh_store
        self._source = source
        self._file = file
        self._wanted = wanted
        self._not_asked: dict[str, str] = {}
        """Why one of the two wasn't, by what people call it."""

    async def where(self) -> tuple[Address, ...]:
        """Raises SourceRefused where the source can't be asked, and the store hasn't the file."""
        stored: tuple[Address, ...] = ()
        self._not_asked.clear()
        if self._mesh_store is not None:
            address, why = await self._mesh_store.where(self._wanted)
            stored = (address,) if address is not None else ()
            if why:
                self._not_asked[self._mesh_store.said] = why
        try:
            settings = await self._secrets.settings_for(self._source)
            return (*stored, *await asyncio.to_thread(addresses, self._source, self._file, settings))
        except SourceRefused as refused:
            if not stored:
                raise SourceRefused("; ".join((str(refused), *self._not_asked.values()))) from None
            self._not_asked[told_source(self._source)] = str(refused)
            return stored

    def told(self, error: NotFetched) -> NotFetched:
        """The same with why one of the two wasn't asked."""
        if not self._not_asked:
            return error
        return NotFetched("; ".join((str(error), *self._not_asked.values())), (*self._not_asked.items(), *error.tries))
