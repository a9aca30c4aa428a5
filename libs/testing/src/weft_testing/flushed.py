"""Knowing that the server has seen what a client wrote."""

from nats.aio.client import Client

FLUSH_S = 30


async def flushed(client: Client) -> None:
    """The server has taken all that this client wrote: what it subscribed is known, what it may not do is refused.

    NATS's own `flush` sends its ping ahead of what still waits in the client's buffer, so it may come back before the
    server has read the line above it. The second one's ping follows what the first one sent.
    """
    await client.flush(FLUSH_S)
    await client.flush(FLUSH_S)
