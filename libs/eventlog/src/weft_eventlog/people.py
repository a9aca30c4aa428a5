"""The bucket `people`: what an admin calls those whom the log knows by opaque ids. All of it can be erased."""

import asyncio
import contextlib
from collections.abc import Iterable

from nats.aio.client import Client
from nats.js.errors import KeyNotFoundError, ServerError
from nats.js.kv import KeyValue
from weft_contracts.topology import PEOPLE

from weft_eventlog.errors import unavailable

_TIMEOUT = 5.0
_AT_ONCE = 32


async def put_name(client: Client, id: str, name: str) -> None:
    """Keep a name for an id, in place of the one before. Raises LogUnavailable."""
    with unavailable(f"the name of {id} can't be kept"):
        await (await _bucket(client)).put(id, name.encode())


async def get_names(client: Client, ids: Iterable[str]) -> dict[str, str]:
    """The names that are kept for some ids. Raises LogUnavailable."""
    with unavailable("names can't be read"):
        bucket, slots = await _bucket(client), asyncio.Semaphore(_AT_ONCE)

        async def get(id: str) -> tuple[str, str | None]:
            async with slots:
                try:
                    value = (await bucket.get(id)).value
                except KeyNotFoundError:
                    return id, None
                return id, None if value is None else value.decode(errors="replace")

        return {id: name for id, name in await asyncio.gather(*map(get, ids)) if name is not None}


async def erase_name(client: Client, id: str) -> None:
    """Keep no name for an id any more: its bytes are overwritten. Raises LogUnavailable.

    A bucket that an older version made forbids that; there, its place in the file is freed and no more.
    """
    js = client.jetstream(timeout=_TIMEOUT)
    with unavailable(f"the name of {id} can't be erased"):
        bucket = await _bucket(client)
        with contextlib.suppress(KeyNotFoundError):
            stands = (await bucket.get(id)).revision
            assert stands is not None
            try:
                await js.delete_msg(f"KV_{PEOPLE.name}", stands)
            except ServerError:
                await bucket.delete(id)


async def _bucket(client: Client) -> KeyValue:
    return await client.jetstream(timeout=_TIMEOUT).key_value(PEOPLE.name)
