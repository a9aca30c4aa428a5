"""Fetches one registered file, from its node or from the model's source: whole and verified, or not at all."""

import asyncio
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from ssl import SSLContext
from types import TracebackType
from typing import Final
from urllib.parse import quote

from weft_files import Address, Blob, Bounds, Checksum, NodeTrust, NotFetched, Resolver, Store, Wanted
from weft_sources.card_addresses import at_node, at_source, why_away
from weft_sources.settings import SourceSettings

from weft_metadata_cache.domain.due_fetches import Fetch

BOUNDS: Final = Bounds(tries=3, least=16 << 10)
_PACE: Final = 1 << 20
"""Bytes a second; a try may take so long, besides what is set."""
_KEEP_FREE: Final = 64 << 20
"""Bytes that stay free on the folder's disk."""


class NotServed(Exception):
    """Neither the node nor the source gives what was registered; the text says what came instead."""


class Fetcher:
    """Asks nodes' file servers, then models' sources. Use it as a context manager; what it fetched is gone at its end,
    unless it has a folder."""

    def __init__(
        self,
        sources: SourceSettings,
        *,
        folder: Path | None = None,
        most_bytes: int = 1 << 30,
        timeout: float = 60.0,
        bounds: Bounds = BOUNDS,
        context: Callable[[], SSLContext] | None = None,
    ) -> None:
        """`folder`: where files lie until they are kept elsewhere; None: a temporary one. `timeout`: seconds of one
        try, and more for large files. `context`: for TLS, where a node must show its certificate; None: plain."""
        self._sources = sources
        self._folder = folder
        self._most_bytes = most_bytes
        self._timeout = timeout
        self._bounds = bounds
        self._context = context
        self._open = ExitStack()
        self._begun = False

    async def __aenter__(self) -> "Fetcher":
        await asyncio.to_thread(self.begin)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._open.close)

    async def whole(self, fetch: Fetch) -> Blob:
        """The file, of the registered size and checksum; `drop` it when it is kept. Raises NotServed and NoRoom."""
        file = fetch.file
        wanted = Wanted(file.name, file.size, Checksum("blake3", file.blake3), self._most_bytes)
        source = await asyncio.to_thread(at_source, fetch.elsewhere, file.size, self._sources)
        addresses = (*self._at_node(fetch), *source.addresses)
        within = self._timeout + file.size / _PACE
        try:
            async with asyncio.timeout(within):
                return await self._resolver.fetch(wanted, addresses)
        except NotFetched as error:
            raise NotServed(why_away(file.name, error, source.refused, "the metadata-cache")) from None
        except TimeoutError:
            raise NotServed(f"{file.name} can't be had: it did not come within {within:.0f} s") from None

    async def drop(self, blob: Blob) -> None:
        """It is kept elsewhere."""
        await asyncio.to_thread(self._store.drop, blob.blake3)

    def begin(self) -> None:
        """Open the folder, unless that is done. Blocks. Raises OSError and NoRoom where it can't be used."""
        if self._begun:
            return
        with ExitStack() as opening:
            folder = self._folder
            if folder is None:
                folder = Path(opening.enter_context(tempfile.TemporaryDirectory(prefix="weft-metadata-")))
            self._store = Store(folder, keep_free=_KEEP_FREE)
            trust = NodeTrust(self._context) if self._context is not None else None
            self._resolver = Resolver(self._store, self._sources.reach, bounds=self._bounds, trust=trust)
            opening.callback(self._resolver.close)
            self._open = opening.pop_all()
        self._begun = True

    def _at_node(self, fetch: Fetch) -> tuple[Address, ...]:
        """By the replica that offers it, as workers of each release serve it."""
        if not fetch.self_hosted:
            return ()
        path = f"/metadata/{fetch.replica}/{quote(fetch.file.name)}"
        secure = self._context is not None
        return (at_node(fetch.node, fetch.node_name, fetch.host, fetch.port, path, secure=secure),)
