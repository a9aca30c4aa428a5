"""Fetches one file of a source into the store, from wherever it may be asked for, best first."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from weft_contracts.facts.source import FetchedSource, SourceFile, UploadSource
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
    ) -> None:
        """`arrivals`: what brings files here that are sent. `peers`: other nodes, which are asked before the source;
        None: nobody tells of any."""
        self._store = store
        self._arrivals = arrivals
        trust = peers.trust if peers is not None else None
        self._resolver = Resolver(store, secrets.settings.reach, bounds=bounds, trust=trust)
        self._secrets = secrets
        self._peers = peers

    def near(self, files: str) -> NearFiles | None:
        """Who else is asked, in one fetch of a model's files (their digest); None: nobody."""
        return NearFiles(self._peers, files) if self._peers is not None else None

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

        async def at_the_source() -> tuple[Address, ...]:
            settings = await self._secrets.settings_for(source)
            return await asyncio.to_thread(addresses, source, file, settings)

        if near is not None and wanted.tells_content:
            return await near.fetch(self._resolver, wanted, at_the_source, came)
        where = await at_the_source()
        if not where:
            folder = settings.hub_folder
            raise NotFetched(f"{file.name} is not in {folder}, and this node is offline (HF_HUB_OFFLINE)")
        return await self._resolver.fetch(wanted, where, came)

    async def forget(self, source: FetchedSource, files: Sequence[SourceFile]) -> bool:
        """Have go what came of files that nobody here wants any more. False where one of them is still coming. Raises
        OSError."""
        settings, gone = self._secrets.settings, True
        for file in files:
            wanted, where = wanted_file(file), tuple[Address, ...]()
            if not wanted.tells_content and not isinstance(source, UploadSource):
                with contextlib.suppress(SourceRefused):  # then nothing came from there either
                    where = await asyncio.to_thread(addresses, source, file, settings)
            gone = await asyncio.to_thread(self._store.forget, wanted, where) and gone
        return gone

    def close(self) -> None:
        """Begin no more."""
        self._resolver.close()

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
            if ahead:
                raise NotFetched(f"{wanted.name} was sent to the mesh, and no node that can be asked has it now")
            blob = await self._arrivals.wait(files, wanted, came, near.anybody_has_them if near is not None else None)
            if blob is not None:
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
