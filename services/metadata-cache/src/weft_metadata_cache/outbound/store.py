"""The object store `blobs`: verified files under their blake3."""

import asyncio
from collections.abc import Awaitable, Callable

from blake3 import blake3
from weft_contracts.facts.values import MetadataFile
from weft_eventlog import LogUnavailable

_TIMEOUT = 30.0
"""Seconds that reading or writing one blob may take."""


class Store:
    """Reads and writes blobs by the two calls that it is given. Both raise LogUnavailable, `get` KeyError."""

    def __init__(self, get: Callable[[str], Awaitable[bytes]], put: Callable[[str, bytes], Awaitable[None]]) -> None:
        self._get = get
        self._put = put

    async def holds(self, file: MetadataFile) -> bool:
        """Whether the file's bytes are there and sound. What is spoilt, or can't be read, counts as absent."""
        try:
            async with asyncio.timeout(_TIMEOUT):
                data = await self._get(file.blake3)
        except (KeyError, LogUnavailable, TimeoutError):
            return False
        return len(data) == file.size and blake3(data).hexdigest() == file.blake3

    async def keep(self, file: MetadataFile, data: bytes) -> None:
        """Store verified bytes. Raises LogUnavailable, TimeoutError."""
        async with asyncio.timeout(_TIMEOUT):
            await self._put(file.blake3, data)
