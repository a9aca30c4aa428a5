"""The object store `blobs`: verified files, by the name that their content gives them."""

import asyncio

from nats.aio.client import Client
from nats.js.errors import ObjectNotFoundError
from weft_contracts.topology import BLOBS

from weft_eventlog.errors import LogUnavailable, unavailable

_TIMEOUT = 10.0
_WHOLE = 30.0
"""Seconds for all chunks of a blob: the client itself would wait for a missing one for ever."""


async def put(client: Client, name: str, data: bytes) -> None:
    """Store bytes under a name. Storing the same name again replaces it."""
    with unavailable(f"the blob {name} can't be stored"):
        store = await client.jetstream(timeout=_TIMEOUT).object_store(BLOBS.name)
        await store.put(name, data)


async def get(client: Client, name: str) -> bytes:
    """The bytes under a name. Raises KeyError if there are none."""
    with unavailable(f"the blob {name} can't be read"):
        store = await client.jetstream(timeout=_TIMEOUT).object_store(BLOBS.name)
        try:
            async with asyncio.timeout(_WHOLE):
                return (await store.get(name)).data or b""
        except ObjectNotFoundError:
            raise KeyError(name) from None
        except TimeoutError:
            raise LogUnavailable(f"the blob {name} did not come whole within {_WHOLE:.0f} s") from None


async def has(client: Client, name: str) -> bool:
    """Whether a name holds bytes."""
    with unavailable(f"the blob {name} can't be looked up"):
        store = await client.jetstream(timeout=_TIMEOUT).object_store(BLOBS.name)
        try:
            await store.get_info(name)
        except ObjectNotFoundError:
            return False
        return True
