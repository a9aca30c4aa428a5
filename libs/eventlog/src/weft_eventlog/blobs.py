"""The object store `blobs`: verified files, by the name that their content gives them."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from nats.aio.client import Client
from nats.errors import TimeoutError as NatsTimeout
from nats.js.errors import NotFoundError, ObjectNotFoundError
from weft_contracts.topology import BLOBS

from weft_eventlog.errors import LogUnavailable, unavailable

_TIMEOUT: Final = 10.0
_SILENCE: Final = 10.0
"""Seconds for the next piece of a blob: the client itself would wait for a missing one for ever."""
_WHOLE: Final = 30.0
_PACE: Final = 1 << 20
"""Bytes a second; a blob may take so long, and 30 s."""


async def put(client: Client, name: str, data: bytes | Path) -> None:
    """Store bytes, or a file's, under a name. Storing the same name again replaces it. Raises OSError."""
    size = len(data) if isinstance(data, bytes) else (await asyncio.to_thread(data.stat)).st_size
    with unavailable(f"the blob {name} can't be stored"):
        store = await client.jetstream(timeout=_TIMEOUT).object_store(BLOBS.name)
        try:
            async with asyncio.timeout(_within(size)):
                if isinstance(data, bytes):
                    await store.put(name, data)
                else:
                    with data.open("rb") as file:
                        await store.put(name, file)
        except TimeoutError:
            raise LogUnavailable(f"the blob {name} was not taken within {_within(size):.0f} s") from None


async def read(client: Client, name: str, size: int | None, take: Callable[[bytes], object]) -> None:
    """Hand the bytes under a name to `take`, piece by piece; what it raises ends the reading. They are not checked.

    `size`: how many there must be; None: however many. Raises KeyError if there are none, or not so many.
    """
    with unavailable(f"the blob {name} can't be read"):
        stream = client.jetstream(timeout=_TIMEOUT)
        store = await stream.object_store(BLOBS.name)
        try:
            about = await store.get_info(name)
        except (ObjectNotFoundError, NotFoundError):
            raise KeyError(name) from None
        told = about.size or 0
        if size not in (None, told):
            raise KeyError(name)
        if told == 0:
            return
        pieces = await stream.subscribe(f"$O.{BLOBS.name}.C.{about.nuid}", ordered_consumer=True)
        try:
            came = 0
            async with asyncio.timeout(_within(told)):
                while came < told:
                    piece = (await pieces.next_msg(timeout=_SILENCE)).data
                    came += len(piece)
                    take(piece)
        except (TimeoutError, NatsTimeout):
            raise LogUnavailable(f"the blob {name} did not come whole within {_within(told):.0f} s") from None
        finally:
            await pieces.unsubscribe()


def _within(size: int) -> float:
    return _WHOLE + size / _PACE
