"""Puts the gateway together."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from prometheus_client import REGISTRY
from weft_contracts.commit import Recorded
from weft_contracts.ids import NodeId
from weft_eventlog import blobs
from weft_eventlog.credentials import get_credential
from weft_fleet import JoinLimits
from weft_runtime import web
from weft_runtime.decider import told
from weft_runtime.logs import get_logger
from weft_runtime.service import Runtime

from weft_gateway.domain.client_address import networks
from weft_gateway.domain.progress_board import ProgressBoard
from weft_gateway.domain.prompts.lacking import KINDS
from weft_gateway.inbound.admin.aliases import Aliases
from weft_gateway.inbound.admin.asking import Asking
from weft_gateway.inbound.admin.backends import Backends
from weft_gateway.inbound.admin.brake import Brake
from weft_gateway.inbound.admin.engine_profiles import EngineProfiles
from weft_gateway.inbound.admin.events import Events
from weft_gateway.inbound.admin.explanations import Explanations
from weft_gateway.inbound.admin.files import Files
from weft_gateway.inbound.admin.keys import APIKeys
from weft_gateway.inbound.admin.load import Load
from weft_gateway.inbound.admin.logs import ReplicaLogs
from weft_gateway.inbound.admin.models import Models
from weft_gateway.inbound.admin.named_secrets import NamedSecrets
from weft_gateway.inbound.admin.node_caps import NodeCaps
from weft_gateway.inbound.admin.node_labels import NodeLabels
from weft_gateway.inbound.admin.node_models import NodeModels
from weft_gateway.inbound.admin.nodes import Nodes
from weft_gateway.inbound.admin.plans import Plans
from weft_gateway.inbound.admin.policies import Policies
from weft_gateway.inbound.admin.remedy_search import RemedySearch
from weft_gateway.inbound.admin.replicas import Replicas
from weft_gateway.inbound.admin.requests import RequestsForChange
from weft_gateway.inbound.admin.scheduling import SchedulingOfModels
from weft_gateway.inbound.admin.status import Status
from weft_gateway.inbound.admin.tokens import RegistrationTokens
from weft_gateway.inbound.admin.upgrade import Upgrades
from weft_gateway.inbound.admin.uploads import Uploads
from weft_gateway.inbound.http.application import application
from weft_gateway.inbound.http.authenticator import Authenticator
from weft_gateway.inbound.http.error_metrics import ErrorMetrics
from weft_gateway.inbound.http.server import ACCEPTED_S, listen, server_of
from weft_gateway.inbound.inference.limits import Limits
from weft_gateway.inbound.inference.model_loads import ModelLoads
from weft_gateway.inbound.inference.prompt_step import PromptStep
from weft_gateway.inbound.inference.prompt_watch import PromptWatch
from weft_gateway.inbound.inference.prompting import Prompting
from weft_gateway.inbound.inference.request_dispatcher import RequestDispatcher
from weft_gateway.inbound.inference.unary_dispatcher import UnaryDispatcher
from weft_gateway.inbound.install import Install
from weft_gateway.inbound.metrics import Metrics
from weft_gateway.inbound.model_metrics import ModelMetrics
from weft_gateway.inbound.nodes.heartbeats import Heartbeats
from weft_gateway.inbound.nodes.joining import Joining
from weft_gateway.inbound.nodes.node_files import NodeFiles
from weft_gateway.inbound.nodes.node_secrets import NodeSecrets
from weft_gateway.inbound.nodes.registration_quota import RegistrationQuota
from weft_gateway.inbound.nodes.self_service import SelfService
from weft_gateway.inbound.openai.hot_routes import HotRoutes
from weft_gateway.inbound.openai.inference import inference_router
from weft_gateway.inbound.openai.models import OpenAIModels
from weft_gateway.inbound.page.routes import Page
from weft_gateway.inbound.progress_poller import progress_poller
from weft_gateway.outbound.activations import Activations
from weft_gateway.outbound.changes import Changes
from weft_gateway.outbound.connection_pool import ConnectionPool
from weft_gateway.outbound.demand_signal import DemandSignal
from weft_gateway.outbound.fetched_card_files import FetchedCardFiles
from weft_gateway.outbound.first_key import FirstKey
from weft_gateway.outbound.key_names import KeyNames
from weft_gateway.outbound.log_space import LogSpace
from weft_gateway.outbound.sealed_values import SealedValues
from weft_gateway.outbound.tls import gateway_tls
from weft_gateway.projections.fleet_marks import FleetMark, FleetMarks
from weft_gateway.projections.lazy_tables import LazyTables
from weft_gateway.projections.memory import Memory
from weft_gateway.settings import GatewaySettings

_log: Any = get_logger("weft.gateway")


async def start(runtime: Runtime) -> None:
    """Start every part as root tasks of the runtime."""
    settings = cast(GatewaySettings, runtime.settings)
    settings.check()
    tls = gateway_tls(settings)
    listener = listen(settings.http_host, settings.http_port)
    client = runtime.client

    memory = Memory()
    directory, tokens, requests = memory.directory, memory.tokens, memory.requests

    async def earlier(position: int) -> FleetMark | None:
        assert projection.snapshots is not None
        past = Memory()
        mark = await projection.snapshots.earlier(runtime.log, position, past)
        return None if mark is None else FleetMark(past.directory.fleet, mark.suspects)

    marks = FleetMarks(earlier)

    def fold(commits: Sequence[Recorded]) -> None:
        memory.fold(commits)
        marks.folded(directory.fleet, lambda: projection.suspect_marks)

    projection = runtime.projection("directory", fold, memory, on_restored=memory.on_restored)
    first = None
    if settings.first_key is not None:
        first = FirstKey(settings.first_key, memory.keys.views, projection, runtime.log, runtime.health)
    authenticator = Authenticator(
        settings.policy,
        memory.keys,
        projection.caught_up.is_set,
        first_key_known=lambda: first is None or first.known,
        cors=settings.cors,
        trusted_proxies=networks(settings.trusted_proxies),
    )
    log_space = LogSpace(settings.nats_store, lambda: projection.position)
    changes = Changes(runtime.log, lambda: client.is_connected, log_space, projection.wait_for)
    metrics = Metrics(
        models=settings.metrics_models,
        exists=lambda name: directory.model(name) is not None,
        stands=directory.stands_for,
    )
    pool = ConnectionPool(
        runtime.instance,
        directory.endpoints,
        lambda: directory.version,
        lambda _: directory.changed.fire(),
        tls.sessions,
    )
    cards = FetchedCardFiles(directory, partial(blobs.read, client), settings.card_settings, tls.folder)
    prompting = Prompting(cards, directory, asyncio.get_running_loop().time)
    watch = PromptWatch(prompting.look, directory.served)
    prompt_step = PromptStep(prompting, submits=settings.prompts == "gateway", counted=metrics.prompt_made)
    dispatcher = RequestDispatcher(
        directory,
        pool,
        _limits(settings),
        metrics,
        runtime.instance,
        request_log=settings.request_log,
        attribution_key=settings.key_of_digests(),
        prompts=prompt_step,
        activations=Activations(changes, runtime.name),
    )
    unary = UnaryDispatcher(dispatcher, metrics, runtime.instance, request_log=settings.request_log)
    loads = ModelLoads(dispatcher, unary)
    signal = DemandSignal(client, runtime.instance, loads.demand)
    REGISTRY.register(ModelMetrics(loads, metrics.models, metrics.sweep))
    asking = Asking(changes, requests, settings.outcome_wait_s)
    people = LazyTables(settings.database(), runtime.log, projection, directory, requests)
    people.load()

    async def credential(node: NodeId) -> bytes | None:
        return await get_credential(client, node)

    sealed = SealedValues(runtime)
    events = Events(runtime.log, projection, directory.name_of_node)
    logs = ReplicaLogs(directory, tls.node)
    heartbeats = Heartbeats(directory)
    board = ProgressBoard()
    remedies = RemedySearch()
    quota = RegistrationQuota(
        memory.registrations, JoinLimits(settings.waiting_nodes, settings.waiting_nodes_per_token)
    )
    routers = [
        Page().router,
        Install(settings.install_folder).router,
        inference_router(),
        OpenAIModels(directory, prompting.standing).router,
        SchedulingOfModels(directory, asking).router,  # before nodes: none is called `scheduling`
        Nodes(directory, asking, people.lists, heartbeats).router,
        NodeLabels(directory, asking).router,
        NodeCaps(directory, asking).router,
        NodeModels(directory, asking).router,
        RegistrationTokens(tokens, asking, tls.authority).router,
        APIKeys(memory.keys, asking, KeyNames(runtime)).router,
        EngineProfiles(directory, asking).router,
        NamedSecrets(directory, asking, sealed).router,
        Backends(directory, asking, board).router,
        Files(directory, asking, board).router,
        Brake(asking).router,
        Upgrades(directory, asking).router,
        Joining(directory, tokens, asking, credential, quota, certified=tls.authority is not None).router,
        SelfService(directory, asking).router,
        NodeSecrets(directory, sealed.copy).router,
        NodeFiles(directory).router,
        heartbeats.router,
        Models(directory, asking, people.lists, remedies, lambda: projection.suspects).router,
        Uploads(directory, tls.node).router,
        Aliases(directory, asking).router,
        Explanations(directory, runtime.log, remedies, lambda: projection.suspects, marks).router,
        Plans(directory, lambda: projection.suspects).router,
        Policies(directory, asking).router,
        Replicas(people.lists).router,
        logs.router,
        RequestsForChange(requests, changes, people.lists).router,
        events.router,
        Status(
            runtime.instance,
            directory,
            projection,
            dispatcher,
            runtime.health,
            lambda: client.is_connected,
            people.standing,
            log_space,
            board,
            lambda: watch.shown,
        ).router,
        Load(runtime.instance, directory, projection, loads, pool, runtime.health, lambda: client.is_connected).router,
    ]
    app = application(
        routers,
        [*web.health_routes(runtime.health), *runtime.own_routes()],
        authenticator=authenticator,
        max_body=settings.max_body_bytes,
        max_admin_body=settings.max_admin_body_bytes,
        instance=runtime.instance,
    )
    hot = HotRoutes(
        dispatcher,
        unary,
        prompting,
        metrics,
        authenticator=authenticator,
        max_body=settings.max_body_bytes,
        slow_client_bytes=settings.slow_client_bytes,
        show_replicas=settings.show_replicas,
    )
    server = server_of(ErrorMetrics(app, metrics.refused), hot, settings, tls)
    metrics.watch(
        "weft_gateway_running_requests",
        "Choices that run or wait",
        lambda: len(dispatcher.in_flight),
    )
    metrics.watch(
        "weft_gateway_waiting_requests",
        "Requests and their choices that wait for room",
        lambda: dispatcher.queue.total,
    )
    metrics.watch(
        "weft_gateway_loading_requests",
        "Those that wait for a model that loads",
        lambda: dispatcher.loading.total,
    )
    metrics.watch("weft_gateway_sessions", "Open sessions with replicas", lambda: pool.open_count)
    metrics.watch("weft_gateway_tokenizers", "Models' templates and tokenizers in memory", lambda: prompting.loaded)
    metrics.watch_each(
        "weft_gateway_models_without_prompts",
        "Models of which this gateway makes no prompts, or not of chats, by why",
        "why",
        KINDS,
        watch.count,
    )
    metrics.watch("weft_gateway_log_position", "Last folded log sequence", lambda: projection.position)

    async def watch_log() -> None:
        while True:
            await projection.moved(timeout=5.0)
            runtime.health.set("log", projection.halted)
            runtime.health.set("suspect", told(projection.suspects), own=False)

    async def stop() -> None:
        server.should_exit = True
        events.stopping = True
        logs.stop()
        await asyncio.sleep(ACCEPTED_S)
        await asyncio.gather(dispatcher.finish_all(settings.finish_wait_s), unary.finish_all(settings.finish_wait_s))
        await pool.close()
        await cards.close()
        await people.close()
        await prompt_step.close()
        await prompting.close()

    runtime.own_http = True
    runtime.on_stop("demand", signal.leave)
    runtime.on_stop("requests", stop, settings.finish_wait_s + ACCEPTED_S + 2.0)
    runtime.follow(projection, directory.fleet.digest)
    if first is not None:
        runtime.spawn("first key", first.run())
    runtime.spawn("http", server.serve(sockets=[listener]))
    runtime.spawn("requests", dispatcher.watch())
    runtime.spawn("sessions", pool.sweep())
    runtime.spawn("removed nodes", pool.close_removed(directory.is_removed))
    if settings.prompts == "gateway":
        runtime.spawn("prompt watch", watch.run())
    runtime.spawn("log watch", watch_log())
    runtime.spawn("tables", people.run())
    runtime.spawn("demand", signal.run())
    runtime.spawn("progress", progress_poller(runtime, directory, board).run())
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
