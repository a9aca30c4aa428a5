"""FastStream's broker on a service's one connection, for who wants subscribers of its kind.

Import it where one is made: it takes a quarter of a second that no start should pay for nothing.
"""

from faststream.nats import NatsBroker
from nats.aio.client import Client


class _Broker(NatsBroker):
    """On a connection that is there.

    FastStream's own connection ends its task when it is refused, also the one that reconnects: unseen, and for good.
    """

    def __init__(self, client: Client) -> None:
        super().__init__(graceful_timeout=2.0, logger=None)
        self._client = client

    async def _connect(self) -> Client:
        self.config.connect(self._client)
        return self._client


def broker_on(client: Client) -> NatsBroker:
    """A broker that is started and stopped with the service, and ends the connection when it is stopped."""
    return _Broker(client)
