"""The bucket that the mesh keeps its files in: whether it is asked for one, and putting one there."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from weft_files.address import Address
from weft_files.checksum import Checksum
from weft_files.store import Store
from weft_files.wanted import Wanted
from weft_runtime.logs import get_logger
from weft_sources.content_bucket import ContentBucket
from weft_sources.refused import SourceRefused

AWAY_S: Final = 30.0
"""So long a store that did not answer, or refused, is asked for no file: sources are asked at once meanwhile."""
MOST_FRESH: Final = 4096
_log: Any = get_logger("weft.store")


class MeshStore:
    """Of one agent. Files without a checksum of their content, and empty ones, have no place in it."""

    def __init__(self, bucket: ContentBucket, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        """`store`: this node's own, of which files are put."""
        self._bucket = bucket
        self._store = store
        self._clock = clock
        self._fresh: dict[str, bool] = {}
        self._why_away = ""
        self._away_until = 0.0
        self.said = bucket.said
        """What people call it."""

    async def where(self, wanted: Wanted) -> tuple[Address | None, str]:
        """Where it gives a file, or why it isn't asked for it; neither where it just doesn't have it.

        Costs one request, and none for a while after one that failed."""
        checksum = _kept(wanted)
        if checksum is None:
            return None, ""
        if self._clock() < self._away_until:
            return None, self._why_away
        try:
            size = await asyncio.to_thread(self._bucket.size, checksum)
            if size is None:
                return None, ""
            if size != wanted.size:
                self.came(wanted, wrong=True)
                return None, f"{self.said} has another file of {size} bytes under its checksum"
            return await asyncio.to_thread(self._bucket.address, checksum), ""
        except SourceRefused as refused:
            _log.warning("the mesh's store is not asked for files", why=str(refused), seconds=AWAY_S)
            self._why_away, self._away_until = str(refused), self._clock() + AWAY_S
            return None, self._why_away

    def came(self, wanted: Wanted, *, wrong: bool = False) -> None:
        """A file came from its source, from somebody who sent it or from this store: it is to lie there. `wrong`: what
        lies there isn't what it should be."""
        if _kept(wanted) is None:
            return
        known = str(wanted.checksum)
        self._fresh[known] = wrong or self._fresh.pop(known, False)
        while len(self._fresh) > MOST_FRESH:
            self._fresh.pop(next(iter(self._fresh)))

    @property
    def fresh(self) -> Mapping[str, bool]:
        """What came and was not seen yet, by its checksum, with whether another content lies there."""
        return self._fresh

    def seen(self, checksum: str) -> None:
        """Forget that a file came."""
        self._fresh.pop(checksum, None)

    async def put(self, wanted: Wanted, *, over: bool) -> Literal["put", "there", "gone"]:
        """Have a file that lies here lie there, once; `gone`: it lies here no more. `over`: what lies there is wrong.

        Raises SourceRefused, SourceAway and OSError.
        """
        checksum = _kept(wanted)
        if checksum is None:
            return "there"
        if not over:
            size = await asyncio.to_thread(self._bucket.size, checksum)
            if size == wanted.size:
                return "there"
            over = size is not None
        blob = await asyncio.to_thread(self._store.find, wanted)
        if blob is None:
            return "gone"
        return "put" if await self._bucket.put(checksum, blob.size, blob.path, over=over) else "there"


def _kept(wanted: Wanted) -> Checksum | None:
    """By what a file lies there; None: it doesn't."""
    return wanted.checksum if wanted.tells_content and wanted.size else None
