"""A service's one broker: FastStream's, on a connection as all of the mesh has it."""

from collections.abc import Callable

from faststream.nats import NatsBroker
from nats.aio.client import Client
from weft_contracts import permissions
from weft_contracts.catalogue import Writer
from weft_contracts.formats import connection_name
from weft_eventlog import one_socket

from weft_runtime.connection import Options, lasting, read_credentials, signed
from weft_runtime.health import Health
from weft_runtime.settings import ServiceSettings
from weft_runtime.tls_settings import nats_tls


class _Broker(NatsBroker):
    """Connects as all of the mesh does.

    FastStream's own connection ends its task when it is refused, also the one that reconnects: unseen, and for good.
    """

    def __init__(self, servers: list[str], options: Options) -> None:
        super().__init__(servers, graceful_timeout=2.0, logger=None)
        self._servers = servers
        self._options = options

    async def _connect(self) -> Client:
        client = await one_socket.connected(self._servers, **self._options)
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


async def connected(broker: NatsBroker) -> Client:
    """Connect, however long NATS is away: the client itself tries for ever, with a bounded wait between tries."""
    await broker.connect()
    return broker._connection  # pyright: ignore
