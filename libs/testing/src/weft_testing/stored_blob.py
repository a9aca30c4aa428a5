"""What the object store holds, read as gateways read it."""

from nats.aio.client import Client
from weft_eventlog import blobs


async def stored_blob(client: Client, name: str) -> bytes | None:
    """The bytes under a name; None where there are none."""
    parts: list[bytes] = []
    try:
        await blobs.read(client, name, None, parts.append)
    except KeyError:
        return None
    return b"".join(parts)
