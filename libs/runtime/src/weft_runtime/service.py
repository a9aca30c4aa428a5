"""A service's life: connect, start what it is made of, run until told to stop, stop in order, each part bounded."""

import asyncio
import secrets
import signal
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from nats.aio.client import Client
from nats.errors import Error as NatsError
from prometheus_client import REGISTRY
from starlette.routing import BaseRoute
from weft_contracts.catalogue import Writer
from weft_contracts.topology import SIGNALS
from weft_eventlog import EventLog, LastValues, Leases, Projection, Snapshots
from weft_eventlog.projection import Fold
from weft_eventlog.snapshots.store import SnapshotStore

from weft_runtime import logs, traces, web
from weft_runtime.decider import Decide, Decider
from weft_runtime.health import Health
from weft_runtime.leadership import Leadership
from weft_runtime.lifeline import lifeline_closed
from weft_runtime.logs import get_logger
from weft_runtime.root_tasks import RootTasks
from weft_runtime.service_connection import connected
from weft_runtime.service_metrics import ServiceMetrics
from weft_runtime.settings import BAD_SETTINGS, BadSetting, ServiceSettings

if TYPE_CHECKING:
    from faststream.nats import NatsBroker

_log: Any = get_logger("weft.service")

Digest = Callable[[], str]


class Runtime(RootTasks):
    """What a service's start function gets: its connection, its log, its health, and where to put its tasks."""

    def __init__(
        self,
        name: Writer,
        settings: ServiceSettings,
        client: Client,
        health: Health,
        instance: str,
    ) -> None:
        super().__init__()
        self.name: Writer = name
        self.settings = settings
        self.instance = instance
        """New at each start of the process; stands in every line of its log."""
        self.client = client
        self.log = self.event_log(name)
        self.health = health
        self.routes: list[BaseRoute] = []
        """Further routes of the small HTTP server that serves health and metrics."""
        self.own_http = False
        """Set by a service that serves health and metrics through an HTTP server of its own."""
        self.projections: dict[Projection, Digest | None] = {}
        self._leadership: Leadership | None = None
        self._heard: list[str] = []

    @cached_property
    def broker(self) -> "NatsBroker":
        """FastStream's, on this service's connection: started when the service's start is over, stopped with it."""
        from weft_runtime.broker import broker_on  # what no start pays for that makes none

        return broker_on(self.client)

    @property
    def _made_broker(self) -> "NatsBroker | None":
        return self.broker if "broker" in self.__dict__ else None

    @property
    def connections(self) -> int:
        """How often this process has connected anew: another number, perhaps another server."""
        return self.client.stats["reconnects"]

    @property
    def servers(self) -> int:
        """NATS servers that this connection knows of."""
        return max(1, len(self.client.servers))

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """All that this process hears: what it hears as it comes, its projections and the broker's subscribers."""
        filters = [filter for projection in self.projections for filter in projection.filters]
        made = self._made_broker
        subscribers: list[Any] = list(made.subscribers) if made else []  # NATS' own, which have a subject
        return (*dict.fromkeys([*filters, *self._heard, *(str(each.subject.template) for each in subscribers)]),)

    def leases(self, filter: str) -> Leases:
        """A reader of the leases below a filter."""
        self._heard.append(filter)
        return Leases(self.client, filter)

    def signals(self, filter: str, called: str) -> LastValues:
        """A reader of the signals below a filter, which people call so."""
        self._heard.append(filter)
        return LastValues(self.client, SIGNALS, filter, called)

    def event_log(self, actor: str) -> EventLog:
        """The log on this service's connection, for those who append under another name than that of the service."""
        return EventLog(self.client, actor=actor, trace=traces.appending if traces.on() else None)

    def projection(
        self,
        name: str,
        fold: Fold,
        memory: object,
        *,
        on_restored: Callable[[], None] = lambda: None,
    ) -> Projection:
        """A fold of the whole log that starts from snapshots of its memory; see `weft_eventlog.Snapshots`."""
        snapshots = Snapshots(
            SnapshotStore(self.client, self.name, name),
            memory,
            instance=self.instance,
            every=self.settings.snapshot_every,
            on_restored=on_restored,
        )
        return Projection(self.log, name=name, fold=fold, snapshots=snapshots)

    def follow(self, projection: Projection, digest: Digest | None = None) -> None:
        """Run a projection as a root task; the service is ready once it has caught up the first time, unless the
        log is of a later release.

        `digest` names the folded state's content: `/projections` shows it, so that a fold thrown away and made
        again can be held against this one.
        """
        self.projections[projection] = digest
        part = f"projection {projection.name}"
        self.health.set_ready(part, False)
        self.spawn(part, projection.run())
        self.spawn(f"{part} catching up", self._caught_up(part, projection))
        if projection.snapshots is not None:
            self.spawn(f"{part} snapshots", projection.snapshots.run(projection))
            web.watch_snapshots(projection.name, projection.snapshots)

    async def leadership(self) -> Leadership:
        """This instance's stand for the service's lease; made at the first call."""
        if self._leadership is None:
            self._leadership = Leadership(self.client, self.name, self.instance)
            self.spawn("leadership", self._leadership.run())
            self.on_stop("leadership", self._leadership.release, 2.0)
        return self._leadership

    async def decide(self, projection: Projection, rule: Decide, digest: Digest | None = None) -> None:
        """Follow a projection and decide by `rule` whenever it moved, as a root task."""
        self.follow(projection, digest)
        decider = Decider(self.log, projection, await self.leadership(), self.health, rule)
        self.spawn("decider", decider.run())

    async def _caught_up(self, part: str, projection: Projection) -> None:
        await projection.caught_up.wait()
        if projection.outdated is None:  # else it stays unready, so that a rollout goes no further
            self.health.set_ready(part, True)
        _log.info("caught up", projection=projection.name, position=projection.position)
        await asyncio.Event().wait()

    def own_routes(self) -> list[BaseRoute]:
        """What the HTTP server of any service shows beside its health: its folds, and its AsyncAPI document."""
        return [web.projections_route(self.projections), web.asyncapi_route(self.name, lambda: self.subscriptions)]

    def show_metrics(self) -> None:
        """Let `/metrics` tell of this process."""
        client = self.client
        REGISTRY.register(
            ServiceMetrics(
                self.name,
                self.health,
                lambda: client.is_connected,
                lambda: self.connections,
                lambda: self.projections.keys(),
                lambda: self._leadership,
            )
        )

    async def run(self) -> int:
        """Wait for the first root task to end; the exit status is 0 only where it was asked to stop."""
        if not self.own_http:
            http = web.server(
                web.app(self.health, [*self.own_routes(), *self.routes]),
                self.settings.http_host,
                self.settings.http_port,
            )
            self.spawn("http", http.serve())
        return await self.first_end()

    async def stop(self) -> None:
        """Stop in order: what registered for it, last first; then the root tasks; then the connection."""
        await self.end_all()
        try:
            made = self._made_broker
            await asyncio.wait_for(made.stop() if made else self.client.drain(), 3.0)
        except (NatsError, TimeoutError) as error:
            _log.debug("connection not closed in order", error=repr(error))


async def _until_signalled() -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()


async def _until_closed(closed: asyncio.Event, client: Client) -> None:
    """A connection that the server ended for good, as it does with an expired token, comes back in a new process."""
    await closed.wait()
    _log.error("the connection is closed for good", error=repr(client.last_error))


async def _live(
    name: Writer, instance: str, settings: ServiceSettings, start: Callable[[Runtime], Awaitable[None]]
) -> int:
    lifeline = settings.lifeline_fd
    signalled = asyncio.create_task(_until_signalled(), name="signals")
    ends = [signalled]
    if lifeline is not None:
        ends.append(asyncio.create_task(lifeline_closed(lifeline), name="lifeline"))
    health = Health()
    closed = asyncio.Event()
    connecting = asyncio.create_task(connected(name, settings, health, closed.set))
    await asyncio.wait([*ends, connecting], return_when=asyncio.FIRST_COMPLETED)
    if not connecting.done():
        connecting.cancel()
        return 0
    runtime = Runtime(name, settings, connecting.result(), health, instance)
    for task in ends:
        runtime.adopt(task)
    runtime.show_metrics()
    runtime.spawn("connection", _until_closed(closed, runtime.client))
    try:
        await start(runtime)
        if (made := runtime._made_broker) is not None:
            await made.start()
        status = await runtime.run()
    except BadSetting as error:
        _log.error("can't start", why=str(error))
        status = BAD_SETTINGS
    except Exception:
        _log.exception("can't start")
        status = 1
    finally:
        try:
            async with asyncio.timeout(settings.stop_timeout):
                await runtime.stop()
        except TimeoutError:
            _log.warning("stop cut short", after_s=settings.stop_timeout)
    return status


def serve(name: Writer, settings: ServiceSettings, start: Callable[[Runtime], Awaitable[None]]) -> int:
    """Run a service until SIGTERM, SIGINT, its lifeline's end or the end of a root task.

    Returns the exit status: 0 where it was asked to stop, 1 after a failure, 2 where a setting can't be used.
    """
    instance = f"{name}-{secrets.token_hex(4)}"
    logs.configure(name, instance, settings.log_level, settings.log_format)
    traces.configure(name, instance, settings.otlp_endpoint)
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            return runner.run(_live(name, instance, settings, start))
        except BadSetting as error:
            _log.error("can't start", why=str(error))
            return BAD_SETTINGS
        finally:
            traces.flush()
