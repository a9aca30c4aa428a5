"""One fetch of a model's files from other nodes: whom it asks, how long it waits for them, and who lied."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from weft_contracts.ids import NodeId
from weft_files.address import Address
from weft_files.blobs import Blob
from weft_files.faults import NotFetched
from weft_files.resolver import Resolver
from weft_files.wanted import Wanted
from weft_runtime.logs import get_logger

from weft_worker_agent.outbound.files.peers import Peer, Peers, Row

ALONE_S: Final = 600.0
"""So long peers that bring nothing are waited for where there is nobody else to ask."""
HANDED_ON: Final = 4
"""So often a peer may give something else to which the files are still coming: it hands on what others give it."""
_LOOK_S: Final = 0.5
_PAUSES_S: Final = (0.5, 1.0, 2.0, 4.0, 4.0, 4.0)
"""Behind each round in which all peers said no at once; then they count as waited for in vain."""
_log: Any = get_logger("weft.fetches")


class NearFiles:
    """Of all files of one model, which come one after another: what a peer is worth is remembered over them."""

    def __init__(
        self, peers: Peers, files: str, clock: Callable[[], float] = time.monotonic, *, store: str = ""
    ) -> None:
        """`store`: what people call the mesh's store, which may be among the source's addresses; empty: there is
        none."""
        self._peers = peers
        self._store = store
        self._files = files
        self._clock = clock
        self._moved_at = clock()
        """When a byte came last, or this began."""
        self._wrong: Counter[str] = Counter()
        """How often a peer gave something else, by its certificate's name."""
        self._whole: frozenset[str] = frozenset()
        """Those of the row that is asked which have the files."""
        self._in_vain: Counter[NodeId] = Counter()
        self._given_up = False
        self.giver = ""
        """The peer, or the mesh's store, that is asked now; empty: the source is."""
        self.store_lied = False
        """Whether, of the file that was asked for last, the mesh's store gave something else."""

    async def fetch(
        self,
        resolver: Resolver,
        wanted: Wanted,
        source: Callable[[], Awaitable[Sequence[Address]]],
        came: Callable[[int], None],
    ) -> Blob:
        """The blob, from a peer where one gives it, else from the source once it may be asked.

        `source` tells where that is, and what it raises is raised; where it is nowhere, peers alone are waited for.
        Raises NotFetched and NoRoom."""
        checksum = wanted.checksum
        assert checksum is not None
        rounds = 0
        self.store_lied = False
        while True:
            row = None if self._given_up else await self._peers.row(self._files)
            there = self._best(row) if row is not None else []
            addresses = [self._peers.address(peer, self._files, checksum) for peer in there]
            refused = rounds >= len(_PAUSES_S)
            late = row is None or not there or refused or self._still_s >= row.source_after_s
            if late and (where := await source()):
                self._given_up = row is None or row.source_after_s > 0
                return await resolver.fetch(wanted, [*where, *addresses], self._following(came), self)
            if row is None or not there or refused or self._still_s >= ALONE_S:
                raise NotFetched(
                    f"{wanted.name} was not fetched: no other node gives it, and its source can't be asked"
                )
            until = ALONE_S if late else row.source_after_s
            try:
                return await self._while_it_moves(resolver, wanted, addresses, came, row.again_after_s, until)
            except NotFetched as error:
                _log.info("no node gave a file", file=wanted.name, why=str(error))
                await asyncio.sleep(_PAUSES_S[rounds])
                rounds += 1
            except TimeoutError:
                self._in_vain[there[0].node] += 1

    def begin(self) -> None:
        """What is asked for from now on was not waited for before, and nobody lied of it."""
        self.store_lied = False
        self._moved_at = self._clock()

    async def anybody_has_them(self) -> bool:
        """Whether a peer has the files by the log, and not only gets them."""
        row = await self._peers.row(self._files)
        return row is not None and any(peer.whole for peer in row.peers)

    def asks(self, address: Address) -> None:
        """See `weft_files.Told`."""
        self.giver = address.said if address.node or address.said == self._store else ""

    def moved(self) -> None:
        """See `weft_files.Told`. Of a slow link a piece takes longer than a peer is waited for."""
        self._moved_at = self._clock()

    def failed(self, address: Address, why: str, *, wrong: bool) -> None:
        """See `weft_files.Told`."""
        if wrong and address.node:
            self._wrong[address.node] += HANDED_ON if address.node in self._whole else 1
            _log.warning("a node gave another content than it should", node=address.said, files=self._files, why=why)
        if wrong and self._store and address.said == self._store:
            self.store_lied = True
            _log.warning("the mesh's store gave another content than it should", files=self._files, why=why)

    def _best(self, row: Row) -> list[Peer]:
        """Without liars; who gave something else, or was waited for in vain, comes last."""
        self._whole = frozenset(peer.certificate for peer in row.peers if peer.whole)
        left = [peer for peer in row.peers if self._wrong[peer.certificate] < HANDED_ON]
        return sorted(left, key=lambda peer: (self._wrong[peer.certificate], self._in_vain[peer.node]))

    @property
    def _still_s(self) -> float:
        """Seconds since a byte came."""
        return self._clock() - self._moved_at

    async def _while_it_moves(
        self,
        resolver: Resolver,
        wanted: Wanted,
        addresses: Sequence[Address],
        came: Callable[[int], None],
        again_s: float,
        until_s: float,
    ) -> Blob:
        """Raises TimeoutError where nothing came for so long that somebody else is to be asked."""
        began = self._clock()
        task = asyncio.create_task(resolver.fetch(wanted, addresses, self._following(came), self))
        try:
            while True:
                done, _ = await asyncio.wait({task}, timeout=_LOOK_S)
                if done:
                    return task.result()
                if self._clock() - max(began, self._moved_at) >= again_s or self._still_s >= until_s:
                    raise TimeoutError
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    def _following(self, came: Callable[[int], None]) -> Callable[[int], None]:
        """What is there already, and what is lost, is no movement."""
        last: int | None = None

        def moved(bytes: int) -> None:
            nonlocal last
            if last is not None and bytes > last:
                self._moved_at = self._clock()
            last = bytes
            came(bytes)

        return moved
