"""Puts the gateway together."""

import asyncio
import socket
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from weft_contracts.ids import NodeId
from weft_eventlog.credentials import get_credential
from weft_runtime import traces, web
from weft_runtime.logs import get_logger
from weft_runtime.service import Runtime

from weft_gateway.inbound.admin.asking import Asking
from weft_gateway.inbound.admin.brake import Brake
from weft_gateway.inbound.admin.events import Events
from weft_gateway.inbound.admin.failures import Failures
from weft_gateway.inbound.admin.heartbeats import Heartbeats
from weft_gateway.inbound.admin.joining import Joining
from weft_gateway.inbound.admin.keys import APIKeys
from weft_gateway.inbound.admin.leaving import Leaving
from weft_gateway.inbound.admin.logs import ReplicaLogs
from weft_gateway.inbound.admin.models import Models
from weft_gateway.inbound.admin.node_caps import NodeCaps
from weft_gateway.inbound.admin.node_labels import NodeLabels
from weft_gateway.inbound.admin.node_models import NodeModels
from weft_gateway.inbound.admin.nodes import Nodes
from weft_gateway.inbound.admin.replicas import Replicas
from weft_gateway.inbound.admin.requests import RequestsForChange
from weft_gateway.inbound.admin.status import Status
from weft_gateway.inbound.admin.tokens import RegistrationTokens
from weft_gateway.inbound.http.application import application
from weft_gateway.inbound.http.door import Door
from weft_gateway.inbound.http.exchange import Handler
from weft_gateway.inbound.http.front_door import front_door
from weft_gateway.inbound.http.hot_routes import HotRoutes
from weft_gateway.inbound.http.openai_embeddings import embeddings_router
from weft_gateway.inbound.http.openai_models import OpenAIModels
from weft_gateway.inbound.inference.desk import Desk
from weft_gateway.inbound.inference.embedding import EmbeddingDesk
from weft_gateway.inbound.inference.limits import Limits
from weft_gateway.inbound.metrics import Metrics
from weft_gateway.inbound.page.routes import Page
from weft_gateway.outbound.changes import Changes
from weft_gateway.outbound.first_key import FirstKey
from weft_gateway.outbound.names import Names
from weft_gateway.outbound.secured import Secured, secured
from weft_gateway.outbound.sessions import Sessions
from weft_gateway.projections.memory import Memory
from weft_gateway.projections.people import People
from weft_gateway.settings import GatewaySettings

_log: Any = get_logger("weft.gateway")
_KEEP_ALIVE_S = 75
"""Longer than clients keep their idle connections, so that they end them and never meet a closed one."""


async def start(runtime: Runtime) -> None:
    """Start every part as root tasks of the runtime."""
    settings = cast(GatewaySettings, runtime.settings)
    settings.check()
    tls = secured(settings)
    listener = _listen(settings.http_host, settings.http_port)
    client = runtime.client

    memory = Memory()
    directory, tokens, requests = memory.directory, memory.tokens, memory.requests
    code = ("weft_placement", "weft_gateway.domain", "weft_gateway.projections")
    projection = runtime.projection("directory", memory.fold, memory, code=code, taken_up=memory.taken_up)
    door = Door(settings.policy, memory.keys, projection.caught_up.is_set)
    metrics = Metrics()
    sessions = Sessions(
        runtime.instance,
        directory.targets,
        lambda: directory.version,
        lambda _: directory.changed.fire(),
        tls.sessions,
    )
    desk = Desk(directory, sessions, _limits(settings), metrics, runtime.instance, request_log=settings.request_log)
    embeddings = EmbeddingDesk(desk, metrics, runtime.instance, request_log=settings.request_log)
    changes = Changes(runtime.log, lambda: client.is_connected)
    asking = Asking(changes, requests, settings.outcome_wait_s)
    people = People(settings.postgres_url, runtime.log, projection, directory, requests)

    async def credential(node: NodeId) -> bytes | None:
        return await get_credential(client, node)

    events = Events(runtime.log, projection, directory.name_of_node)
    logs = ReplicaLogs(directory, tls.node)
    failures = Failures()
    heartbeats = Heartbeats(directory, failures)
    routers = [
        Page().router,
        embeddings_router(),
        OpenAIModels(directory).router,
        Nodes(directory, asking, people.lists, heartbeats).router,
        NodeLabels(directory, asking).router,
        NodeCaps(directory, asking).router,
        NodeModels(directory, asking).router,
        RegistrationTokens(tokens, asking, tls.authority).router,
        APIKeys(memory.keys, asking, Names(runtime)).router,
        Brake(asking).router,
        Joining(directory, tokens, asking, credential, failures, certified=tls.authority is not None).router,
        Leaving(directory, asking, failures).router,
        heartbeats.router,
        Models(directory, asking, people.lists).router,
        Replicas(people.lists).router,
        logs.router,
        RequestsForChange(requests, changes, people.lists).router,
        events.router,
        Status(
            runtime.instance,
            directory,
            projection,
            desk,
            runtime.health,
            lambda: client.is_connected,
            people.standing,
        ).router,
    ]
    app = application(
        routers,
        [*web.health_routes(runtime.health), *runtime.own_routes()],
        door=door,
        max_body=settings.max_body_bytes,
        instance=runtime.instance,
    )
    hot = HotRoutes(
        desk,
        embeddings,
        metrics,
        door=door,
        max_body=settings.max_body_bytes,
        slow_client_bytes=settings.slow_client_bytes,
    )
    server = _server(*_traced(app, hot), settings, tls)
    metrics.watch("weft_gateway_running_requests", "Inference requests that run now", lambda: len(desk.running))
    metrics.watch("weft_gateway_waiting_requests", "Requests that wait for a busy model", lambda: desk.queue.total)
    metrics.watch("weft_gateway_loading_requests", "Requests for a model that loads", lambda: desk.loading.total)
    metrics.watch("weft_gateway_sessions", "Open sessions with replicas", lambda: sessions.open_count)
    metrics.watch("weft_gateway_log_position", "Last folded log sequence", lambda: projection.position)

    async def watch_log() -> None:
        while True:
            await projection.moved(timeout=5.0)
            runtime.health.set("log", projection.halted)
            suspects = [f"{aggregate}: {why}" for aggregate, why in projection.suspects.items()]
            runtime.health.set("suspects", "; ".join(suspects[:5]) or None)

    async def stop() -> None:
        server.should_exit = True
        events.stopping = True
        logs.stop()
        await asyncio.gather(desk.finish_all(settings.finish_wait_s), embeddings.finish_all(settings.finish_wait_s))
        await sessions.close()
        await people.close()

    runtime.own_http = True
    runtime.on_stop("requests", stop, settings.finish_wait_s + 2.0)
    runtime.follow(projection, directory.fleet.digest)
    if settings.first_key is not None:
        first = FirstKey(settings.first_key, memory.keys.views, projection, runtime.log, runtime.health)
        runtime.spawn("first key", first.run())
    runtime.spawn("http", server.serve(sockets=[listener]))
    runtime.spawn("desk", desk.watch())
    runtime.spawn("sessions", sessions.sweep())
    runtime.spawn("removed nodes", sessions.shut_out(directory.is_removed))
    runtime.spawn("log watch", watch_log())
    runtime.spawn("tables", people.run())
    host, port = listener.getsockname()[:2]
    _log.info("listening", host=host, port=port)


def _limits(settings: GatewaySettings) -> Limits:
    return Limits(
        loading_wait=settings.loading_wait_s,
        loading_line=settings.loading_line,
        busy_wait=settings.busy_wait_s,
        busy_queue=settings.busy_queue,
        resume_wait=settings.resume_wait_s,
        stall=settings.stall_s,
    )


def _listen(host: str, port: int) -> socket.socket:
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


def _server(app: ASGIApp, hot: Handler, settings: GatewaySettings, tls: Secured) -> web.QuietServer:
    config = uvicorn.Config(
        app,
        http=front_door(hot),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # who asks is who is at the socket
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=int(settings.finish_wait_s) + 1,
        backlog=2048,
    )
    folder = tls.folder
    if folder is None:
        return web.QuietServer(config)
    from weft_runtime.secure_server import SecureServer

    return SecureServer(config, lambda: folder.people(settings.http_certificate, settings.http_key))
