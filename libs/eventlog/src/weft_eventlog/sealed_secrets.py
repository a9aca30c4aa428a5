"""The bucket `secrets`: sealed values alone, by the keys of `weft_contracts.secrets`. What is erased is overwritten."""

import contextlib

from nats.aio.client import Client
from nats.js.errors import KeyNotFoundError
from nats.js.kv import KeyValue
from weft_contracts.topology import SECRETS

from weft_eventlog.errors import unavailable

_TIMEOUT = 5.0
_STREAM, _SUBJECTS = f"KV_{SECRETS.name}", f"$KV.{SECRETS.name}."


async def put_sealed(client: Client, key: str, sealed: bytes) -> None:
    """Lay something sealed out. Raises LogUnavailable."""
    with unavailable(f"what is sealed can't be laid out under {key}"):
        await (await _bucket(client)).put(key, sealed)


async def get_sealed(client: Client, key: str) -> bytes | None:
    """What lies under a key; None where nothing does. Raises LogUnavailable."""
    with unavailable(f"what is sealed under {key} can't be read"), contextlib.suppress(KeyNotFoundError):
        return (await (await _bucket(client)).get(key)).value
    return None


async def sealed_keys(client: Client) -> set[str]:
    """Every key under which something lies. Raises LogUnavailable."""
    with unavailable("what is sealed can't be listed"):
        info = await client.jetstream(timeout=_TIMEOUT).stream_info(_STREAM, subjects_filter=f"{_SUBJECTS}>")
        return {subject.removeprefix(_SUBJECTS) for subject in info.state.subjects or ()}


async def erase_sealed(client: Client, key: str) -> None:
    """Keep nothing under a key any more: its bytes are overwritten. Raises LogUnavailable."""
    with unavailable(f"what is sealed under {key} can't be erased"), contextlib.suppress(KeyNotFoundError):
        stands = (await (await _bucket(client)).get(key)).revision
        assert stands is not None
        await client.jetstream(timeout=_TIMEOUT).delete_msg(_STREAM, stands)


async def _bucket(client: Client) -> KeyValue:
    return await client.jetstream(timeout=_TIMEOUT).key_value(SECRETS.name)
