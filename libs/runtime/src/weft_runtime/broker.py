"""A service's one broker: FastStream's, on a connection as all of the mesh has it."""

from collections.abc import Callable
from pathlib import Path

from faststream.nats import NatsBroker
from nats.aio.client import Client
from weft_contracts import permissions
from weft_contracts.catalogue import Writer
from weft_contracts.formats import connection_name
from weft_eventlog import one_socket
from weft_eventlog.placed_client import PlacedClient

from weft_runtime.connection import Options, lasting, read_credentials, signed
from weft_runtime.health import Health
from weft_runtime.settings import BadSetting, ServiceSettings
from weft_runtime.tls_settings import nats_tls


class _Broker(NatsBroker):
    """Connects as all of the mesh does.

    FastStream's own connection ends its task when it is refused, also the one that reconnects: unseen, and for good.
    """

    def __init__(self, servers: list[str], options: Options, client: one_socket.OneSocket | None = None) -> None:
        super().__init__(servers, graceful_timeout=2.0, logger=None)
        self._servers = servers
        self._options = options
        self._client = client

    async def _connect(self) -> Client:
        client = await one_socket.connected(self._servers, client=self._client, **self._options)
        self.config.connect(client)
        return client


def make_broker(
    name: Writer,
    settings: ServiceSettings,
    health: Health | None = None,
    on_closed: Callable[[], None] | None = None,
) -> NatsBroker:
    """The service's one broker and so its one connection, with its own inbox prefix and credentials.

    Raises BadSetting.
    """
    options = lasting(lambda: broker._connection, health, on_closed) | nats_tls(settings)  # pyright: ignore
    options |= {"name": connection_name(name), "inbox_prefix": permissions.service(name).inbox.encode()}
    if settings.nats_credentials is not None:
        options |= signed(*read_credentials(settings.nats_credentials))
    broker = _Broker(settings.nats_url.split(","), options)
    return broker


def make_place_broker(
    name: str,
    url: str,
    credentials: Path,
    authority: Path | None,
    health: Health,
    on_closed: Callable[[], None],
    on_there: Callable[[bool], None],
) -> NatsBroker:
    """An observer's one broker, whose pull subscriptions read its place in the log.

    `authority`: by whose certificates it knows NATS; None: a plain connection. `on_there` is called when the
    server has no such place, and when it has one again. Raises BadSetting.
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
    broker = _Broker(url.split(","), options, PlacedClient(on_there))
    return broker


async def connected(broker: NatsBroker) -> Client:
    """Connect, however long NATS is away: the client itself tries for ever, with a bounded wait between tries."""
    await broker.connect()
    return broker._connection  # pyright: ignore
