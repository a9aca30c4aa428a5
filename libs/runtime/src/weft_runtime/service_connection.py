"""A service's one connection to NATS, as all of the mesh has it."""

from collections.abc import Callable

from nats.aio.client import Client
from weft_contracts import permissions
from weft_contracts.catalogue import Writer
from weft_contracts.formats import connection_name
from weft_eventlog import one_socket

from weft_runtime.connection import lasting, read_credentials, signed
from weft_runtime.health import Health
from weft_runtime.settings import ServiceSettings
from weft_runtime.tls_settings import nats_tls


async def connected(
    name: Writer,
    settings: ServiceSettings,
    health: Health | None = None,
    on_closed: Callable[[], None] | None = None,
) -> Client:
    """Connect with the service's own inbox prefix and credentials, however long NATS is away: the client itself tries
    for ever, with a bounded wait between tries.

    Raises BadSetting.
    """
    client: Client | None = None
    options = lasting(lambda: client, health, on_closed) | nats_tls(settings)
    options |= {"name": connection_name(name), "inbox_prefix": permissions.service(name).inbox.encode()}
    if settings.nats_credentials is not None:
        options |= signed(*read_credentials(settings.nats_credentials))
    client = await one_socket.connected(settings.nats_url.split(","), **options)
    return client
