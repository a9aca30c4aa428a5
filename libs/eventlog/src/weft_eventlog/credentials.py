"""The bucket `credentials`: what a node fetches at its polls, by node id."""

from nats.aio.client import Client
from nats.js.errors import KeyNotFoundError
from weft_contracts.ids import NodeId
from weft_contracts.topology import CREDENTIALS

from weft_eventlog.errors import unavailable

_TIMEOUT = 5.0


async def put_credential(client: Client, node: NodeId, value: bytes) -> None:
    """Lay a node's credential out for its next poll. Raises LogUnavailable."""
    with unavailable(f"the credential of {node} can't be laid out"):
        bucket = await client.jetstream(timeout=_TIMEOUT).key_value(CREDENTIALS.name)
        await bucket.put(node, value)


async def get_credential(client: Client, node: NodeId) -> bytes | None:
    """A node's credential; None where none is laid out. Raises LogUnavailable."""
    with unavailable(f"the credential of {node} can't be read"):
        bucket = await client.jetstream(timeout=_TIMEOUT).key_value(CREDENTIALS.name)
        try:
            return (await bucket.get(node)).value
        except KeyNotFoundError:
            return None


async def drop_credential(client: Client, node: NodeId) -> None:
    """Take a node's credential away, if one is laid out. Raises LogUnavailable."""
    with unavailable(f"the credential of {node} can't be taken away"):
        bucket = await client.jetstream(timeout=_TIMEOUT).key_value(CREDENTIALS.name)
        await bucket.delete(node)
