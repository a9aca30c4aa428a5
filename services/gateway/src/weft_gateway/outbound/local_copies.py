"""Copies of a card's file that are nearer than any server: the mesh's object store, and a path on this machine."""

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable
from typing import Final

from weft_contracts.card import CardFile
from weft_eventlog import LogUnavailable
from weft_files.faults import Cut, Refused
from weft_files.incoming import Nearer

ReadBlob = Callable[[str, int | None, Callable[[bytes], object]], Awaitable[None]]
"""Reads a blob by its name in pieces; raises KeyError and LogUnavailable."""
STORE: Final = "the mesh's object store"
_PIECE: Final = 1 << 20


def in_object_store(file: CardFile, read: ReadBlob) -> Nearer:
    """The blob that the metadata-cache kept."""

    async def near(write: Callable[[bytes], None]) -> None:
        try:
            await read(file.checksum.removeprefix("blake3:"), file.size, write)
        except KeyError:
            raise Refused("does not have it") from None
        except LogUnavailable as error:
            raise Cut(f"is away: {error}") from None

    return near


def at_path(path: str) -> Nearer:
    """An ordinary file of this machine, where the model's source lies on a disk that it shares."""

    async def near(write: Callable[[bytes], None]) -> None:
        try:
            opened = await asyncio.to_thread(_opened, path)
        except OSError as error:
            raise Refused(f"can't be read on this host ({error.strerror or error})") from None
        try:
            while piece := await asyncio.to_thread(os.read, opened, _PIECE):
                write(piece)
        finally:
            os.close(opened)

    return near


def _opened(path: str) -> int:
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError("it is no file")
    return opened
