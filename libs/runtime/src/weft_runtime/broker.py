"""FastStream's broker on one connection of ours, for who wants subscribers of its kind.

Import it where one is made: it takes a quarter of a second that no start should pay for nothing.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

from faststream.nats import NatsBroker
from nats.aio.client import Client
from weft_contracts import permissions
from weft_eventlog import one_socket
from weft_eventlog.placed_client import PlacedClient

from weft_runtime.connection import lasting, read_credentials, signed
from weft_runtime.health import Health
from weft_runtime.settings import BadSetting


class _Broker(NatsBroker):
    """On a connection of ours.

    FastStream's own connection ends its task when it is refused, also the one that reconnects: unseen, and for good.
    """

    def __init__(self, connected: Callable[[], Awaitable[Client]]) -> None:
        super().__init__(graceful_timeout=2.0, logger=None)
        self._connected = connected

    async def _connect(self) -> Client:
        client = await self._connected()
        self.config.connect(client)
        return client


def broker_on(client: Client) -> NatsBroker:
    """A broker that is started and stopped with the service, and ends the connection when it is stopped."""

    async def there() -> Client:
        return client

    return _Broker(there)


def make_place_broker(
    name: str,
    url: str,
    credentials: Path,
    authority: Path | None,
    health: Health,
    on_closed: Callable[[], None],
    on_there: Callable[[bool], None],
    on_died: Callable[[BaseException], None] = lambda error: None,
) -> NatsBroker:
    """An observer's one broker, whose pull subscriptions read its place in the log. It connects when it is started.

    `authority`: by whose certificates it knows NATS; None: a plain connection. `on_there` is called when the
    server has no such place, and when it has one again; `on_died` when an error has ended the reading of it. Raises
    BadSetting.
    """
    options = lasting(lambda: broker._connection, health, on_closed)  # pyright: ignore
    options |= {"name": name, "inbox_prefix": permissions.observer(name).inbox.encode()}
    options |= signed(*read_credentials(credentials))
    if authority is not None:
        from weft_runtime.tls import client_context, nats_options

        try:
            options |= nats_options(client_context(authority.read_text()))
        except (OSError, ValueError) as error:
            raise BadSetting(f"the authority's certificate {authority} can't be used: {error}") from None

    async def connected() -> Client:
        return await one_socket.connected(url.split(","), client=PlacedClient(on_there, on_died), **options)

    broker = _Broker(connected)
    return broker
