"""Connections to NATS that never give up and say what they are refused."""

import base64
from collections.abc import Callable
from pathlib import Path
from ssl import SSLError
from typing import Any

import nkeys
from nats.aio.client import Client
from weft_eventlog.one_socket import connected

from weft_runtime.health import Health
from weft_runtime.logs import get_logger
from weft_runtime.settings import BadSetting

_log: Any = get_logger("weft.connection")

Options = dict[str, Any]


def lasting(
    client: Callable[[], Client | None],
    health: Health | None = None,
    on_closed: Callable[[], None] | None = None,
) -> Options:
    """Options of a client that connects and reconnects for ever; `client` gives it once it is there.

    Denied permissions reach the log and `health`. Other trouble is logged once, and anew after a reconnect.
    `on_closed` is called when the client is closed for good.
    """
    said: set[str] = set()

    async def on_error(error: Exception) -> None:
        text = _told(error)
        if "permissions violation" in text.lower():
            _log.error("permission denied", error=text)
            if health is not None:
                health.set("permissions", text)
        elif text not in said:
            said.add(text)
            _log.warning("trouble with NATS", error=text)

    async def on_disconnected() -> None:
        ours = client()
        if ours is None or not ours.is_closed:  # an orderly end is no trouble
            _log.warning("NATS is away")

    async def on_reconnected() -> None:
        said.clear()
        _log.info("NATS is back")

    async def closed() -> None:
        if on_closed is not None:
            on_closed()

    return {
        "error_cb": on_error,
        "disconnected_cb": on_disconnected,
        "reconnected_cb": on_reconnected,
        "closed_cb": closed,
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": 0.25,
        "connect_timeout": 2,
        "ping_interval": 5,
        "max_outstanding_pings": 2,
        "pending_size": 16 << 20,
    }


def _told(error: Exception) -> str:
    if isinstance(error, SSLError):
        from weft_runtime.tls import why

        return f"no TLS connection to NATS: {why(error)}"
    return str(error) or repr(error)


def read_credentials(path: Path) -> tuple[str, bytes]:
    """The token and the seed of a credentials file. Raises BadSetting for a file that is none."""
    try:
        lines = [line.strip() for line in path.read_text().splitlines()]
        token = lines[lines.index("-----BEGIN NATS USER JWT-----") + 1]
        seed = lines[lines.index("-----BEGIN USER NKEY SEED-----") + 1]
        nkeys.from_seed(bytearray(seed.encode()))
    except OSError as error:
        raise BadSetting(f"the credentials file {path} can't be read: {error.strerror}") from None
    except (ValueError, IndexError, nkeys.NkeysError):
        raise BadSetting(f"{path} is no credentials file: token and seed stand between their marks") from None
    return token, seed.encode()


def signed(jwt: str, seed: bytes) -> Options:
    """Options that show a token and sign the server's nonce with its key."""
    key = nkeys.from_seed(bytearray(seed))

    def sign(nonce: str) -> bytes:
        return base64.b64encode(key.sign(nonce.encode()))

    return {"user_jwt_cb": jwt.encode, "signature_cb": sign}


async def connect(
    url: str,
    *,
    jwt: str,
    seed: bytes,
    inbox: str,
    name: str,
    on_closed: Callable[[], None] | None = None,
    tls: Options | None = None,
) -> Client:
    """Connect with a token, however long NATS is away; bound the wait. The client then reconnects for ever.

    `tls`: what `tls.nats_options` gives; None: a plain connection.
    """
    client: Client | None = None
    options = lasting(lambda: client, on_closed=on_closed) | signed(jwt, seed) | (tls or {})
    client = await connected(url.split(","), name=name, inbox_prefix=inbox.encode(), **options)
    return client
