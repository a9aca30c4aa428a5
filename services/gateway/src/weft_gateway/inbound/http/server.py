"""The gateway's HTTP server: where it listens, and how long it keeps what it has accepted."""

import math
import socket
from typing import Final

import uvicorn
from starlette.types import ASGIApp
from weft_runtime import traces, web

from weft_gateway.inbound.http.exchange import Handler
from weft_gateway.inbound.http.hot_path_protocol import hot_path_protocol
from weft_gateway.outbound.tls import GatewayTLS
from weft_gateway.settings import GatewaySettings

ACCEPTED_S: Final = 0.5
"""At a stop requests are still begun for so long, since the listener closes a moment later and connections that it had
accepted then, with their handshakes, are its."""
_KEEP_ALIVE_S: Final = 75
"""Longer than clients keep their idle connections, so that they end them and never meet a closed one."""


def listen(host: str, port: int) -> socket.socket:
    """Bind at once, so that a taken port is a clear error. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise OSError(error.errno, f"can't listen on {host}:{port} ({error.strerror}); set WEFT_HTTP_PORT") from None
    listener.set_inheritable(True)
    return listener


def _traced(app: ASGIApp, hot: Handler) -> tuple[ASGIApp, Handler]:
    """Both with a span for each request, where spans are recorded."""
    if not traces.on():
        return app, hot
    from weft_gateway.inbound.http.traced import TracedApplication, TracedRoutes

    return TracedApplication(app), TracedRoutes(hot)


def server_of(app: ASGIApp, hot: Handler, settings: GatewaySettings, tls: GatewayTLS) -> web.QuietServer:
    """It is not running yet. Over TLS where the gateway has a certificate for people."""
    app, hot = _traced(app, hot)
    config = uvicorn.Config(
        app,
        http=hot_path_protocol(hot, settings.cors),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # who asks is who is at the socket
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=math.ceil(settings.finish_wait_s + ACCEPTED_S) + 1,
        backlog=2048,
    )
    folder = tls.folder
    if folder is None:
        return web.QuietServer(config)
    from weft_runtime.secure_server import SecureServer

    return SecureServer(config, lambda: folder.people(settings.http_certificate, settings.http_key))
