"""Models' small files on this host: kept verified in a folder that its processes share, fetched where they lack.

Asked in turn: that folder, the mesh's object store, the model's path on this machine, the nodes that offer the file,
the model's source. One transfer for each content and host, however many processes and requests ask.
"""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote

from weft_contracts.card import BY_SLUG, CHECKSUM, Card, CardFile, Reading, how_to_read, slug_of
from weft_contracts.ids import ModelId
from weft_fleet import Fleet, ModelView
from weft_runtime.logs import get_logger

from weft_gateway.domain.card_files import CardFileAway, CardSettings
from weft_gateway.domain.model_card import holders, present_card

if TYPE_CHECKING:  # imported with the first file: a gateway without prompts to render does without
    from weft_files import Address, Bounds, Resolver, Store
    from weft_files.incoming import Nearer
    from weft_runtime.tls import TlsFolder
    from weft_sources.settings import SourceSettings

    from weft_gateway.outbound.local_copies import ReadBlob

AWAY_S: Final = 15.0
"""How long a file that could not be had is not asked for again."""
_MOST_AWAY: Final = 1024
_WITHIN_S: Final = 60.0
_PACE: Final = 1 << 20
"""Bytes a second; a fetch may take so long, and 60 s."""
_MOST_CARDS: Final = 4096
_KEEP_FREE: Final = 64 << 20
"""Bytes that stay free on the folder's disk."""
_log: Any = get_logger("weft.cards")


class FoldedModels(Protocol):
    """The folded log, as far as cards need it; `version` counts its changes."""

    fleet: Fleet
    version: int

    def model(self, name: str) -> ModelView | None: ...


@dataclass(frozen=True, slots=True)
class _Opened:
    store: "Store"
    resolver: "Resolver"
    sources: "SourceSettings"


class FetchedCardFiles:
    """The `CardFiles` of a gateway. Methods are called on the loop; `close` at its end."""

    def __init__(
        self,
        models: FoldedModels,
        read: "ReadBlob",
        settings: CardSettings,
        tls: "TlsFolder | None" = None,
        bounds: "Bounds | None" = None,
    ) -> None:
        """`read`: of the object store; `tls`: what nodes are asked with, None: the mesh speaks plainly."""
        self._models = models
        self._bounds = bounds
        self._read = read
        self._settings = settings
        self._tls = tls
        self._opened: _Opened | None = None
        self._opening = asyncio.Lock()
        self._cards: dict[ModelId, tuple[int, Card | None]] = {}
        self._under_way: dict[str, asyncio.Task[Path]] = {}
        self._away: dict[str, tuple[float, str]] = {}

    def card(self, model: str) -> Card | None:
        """See `CardFiles`."""
        view = self._models.model(model)
        if view is None:
            return None
        version, card = self._cards.get(view.id, (-1, None))
        if version != self._models.version:
            found = present_card(self._models.fleet, view)
            card = card if found == card else found
            if len(self._cards) >= _MOST_CARDS:
                self._cards.clear()
            self._cards[view.id] = self._models.version, card
        return card

    async def file(self, model: str, file: CardFile) -> Path:
        """See `CardFiles`."""
        until, why = self._away.get(file.checksum, (0.0, ""))
        if time.monotonic() < until:
            raise CardFileAway(why)
        task = self._under_way.get(file.checksum)
        if task is None:
            task = self._under_way[file.checksum] = asyncio.create_task(self._one(model, file))
            task.add_done_callback(lambda done: self._done(file, done))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """End what is under way."""
        tasks = [*self._under_way.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._opened is not None:
            self._opened.resolver.close()

    async def _one(self, model: str, file: CardFile) -> Path:
        from weft_files import Checksum, NoRoom, NotFetched, Wanted
        from weft_sources.card_addresses import at_source, why_away

        wanted = Wanted(file.name, file.size, Checksum.parse(file.checksum), self._settings.most_bytes)
        within = _WITHIN_S + (file.size or 0) / _PACE
        what, refused = f"{file.name} of {model}", ()
        try:
            opened = await self._open_once()
            source = await asyncio.to_thread(at_source, file.elsewhere, file.size or 0, opened.sources)
            addresses, refused = (*self._at_nodes(model, file), *source.addresses), source.refused
            async with asyncio.timeout(within):
                blob = await opened.resolver.fetch(wanted, addresses, nearer=self._near(file))
            await asyncio.to_thread(opened.store.collect, self._settings.keep_bytes, ())
            return blob.path
        except NotFetched as error:
            raise CardFileAway(why_away(what, error, refused, "this gateway")) from None
        except TimeoutError:
            raise CardFileAway(f"{what} can't be had: it did not come within {within:.0f} s") from None
        except NoRoom as error:
            raise CardFileAway(f"{what} can't be had: {error}") from None
        except OSError as error:
            folder = self._settings.folder
            raise CardFileAway(
                f"{what} can't be had: {folder} can't be used ({error}): set WEFT_METADATA_FOLDER"
            ) from None

    def _done(self, file: CardFile, task: asyncio.Task[Path]) -> None:
        del self._under_way[file.checksum]
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self._away.pop(file.checksum, None)
            return
        while len(self._away) >= _MOST_AWAY:
            del self._away[next(iter(self._away))]
        self._away.pop(file.checksum, None)
        self._away[file.checksum] = time.monotonic() + AWAY_S, str(error)
        _log.warning("a model's file can't be had", file=file.name, why=str(error))

    async def _open_once(self) -> _Opened:
        async with self._opening:
            if self._opened is None:
                self._opened = await asyncio.to_thread(self._open)
            return self._opened

    def _open(self) -> _Opened:
        """Raises OSError and NoRoom."""
        from weft_files import Bounds, NodeTrust, Resolver, Store
        from weft_sources.environment import as_hosts, source_settings

        settings = self._settings
        sources = source_settings(hub=settings.hub, allow=as_hosts(settings.allow))
        store = Store(settings.folder, keep_free=_KEEP_FREE)
        trust = NodeTrust(self._tls.client) if self._tls is not None else None
        bounds = self._bounds or Bounds(tries=2, least=16 << 10)
        return _Opened(store, Resolver(store, sources.reach, bounds=bounds, trust=trust), sources)

    def _near(self, file: CardFile) -> "dict[str, Nearer]":
        """What is asked before any address, by what people call it."""
        from weft_gateway.outbound.local_copies import STORE, at_path, in_object_store

        paths = {path: at_path(path) for path in file.elsewhere if path.startswith("/")}
        return {STORE: in_object_store(file, self._read), **paths}

    def _at_nodes(self, model: str, file: CardFile) -> "list[Address]":
        """At the nodes that offer it; none for what an older worker published, which is read by its path alone."""
        from weft_sources.card_addresses import at_node

        view = self._models.model(model)
        found = holders(self._models.fleet, view, file) if view is not None else ()
        reading = how_to_read(Card(extra=(file,)), reader_is_new=True, self_hosted=bool(found))
        if view is None or reading is not Reading.FROM_WORKER:
            return []
        path = f"{BY_SLUG}/{slug_of(view.name)}/{quote(file.name)}?{CHECKSUM}={quote(file.checksum)}"
        secure = self._tls is not None
        return [at_node(each.node, each.name, each.host, each.port, path, secure=secure) for each in found]
