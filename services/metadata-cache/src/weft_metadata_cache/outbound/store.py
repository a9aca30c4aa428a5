"""The object store `blobs`: verified files under their blake3."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from blake3 import blake3
from weft_contracts.facts.values import MetadataFile
from weft_eventlog import LogUnavailable

Read = Callable[[str, int, Callable[[bytes], object]], Awaitable[None]]
Put = Callable[[str, Path], Awaitable[None]]


class Store:
    """Blobs in pieces, by the two calls that it is given: both raise LogUnavailable, `read` KeyError."""

    def __init__(self, read: Read, put: Put) -> None:
        self._read = read
        self._put = put

    async def holds(self, file: MetadataFile) -> bool:
        """Whether the file's bytes are there and sound. What is spoilt, or can't be read, counts as absent."""
        digest = blake3()
        try:
            await self._read(file.blake3, file.size, digest.update)
        except (KeyError, LogUnavailable):
            return False
        return digest.hexdigest() == file.blake3

    async def keep(self, file: MetadataFile, path: Path) -> None:
        """Store a verified file. Raises LogUnavailable, OSError."""
        await self._put(file.blake3, path)
