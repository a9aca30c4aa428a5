"""An observer: reads the mesh's log from its place, and hands each fact that was asked for to whoever asked."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import uvloop
from faststream import FastStream
from faststream.nats import NatsBroker, NatsMessage
from faststream.params import NoCast
from weft_contracts.commit import Recorded
from weft_contracts.facts.fact import Unknown, Unreadable
from weft_runtime import logs, web
from weft_runtime.broker import make_place_broker
from weft_runtime.health import Health
from weft_runtime.lifeline import lifeline_closed
from weft_runtime.settings import BAD_SETTINGS, BadSetting

from weft_observer import figures
from weft_observer.happened import Happened, checked, fits
from weft_observer.place import place
from weft_observer.settings import ObserverSettings
from weft_observer.trying import Trying

Handler = Callable[[Happened], Awaitable[None]]
_log: Any = logs.get_logger("weft.observer")


@dataclass(frozen=True, slots=True)
class _Asked:
    """Who asked for what."""

    patterns: tuple[str, ...]
    handler: Handler


class Observer:
    """Handlers, and the process that they live in.

    Each fact is handed on in the log's order, one after the other, at least once: its commit is acknowledged when all
    of its facts are done with. Facts of a newer mesh that this version doesn't know are passed over.
    """

    def __init__(self, settings: ObserverSettings | None = None) -> None:
        """`settings`: None reads the environment, and ends the process with status 2 where that is wrong."""
        self.settings = settings or ObserverSettings()
        self.health = Health()
        """What `/healthz` shows; handlers may report here what is wrong."""
        self._asked: list[_Asked] = []
        self._stops: list[Callable[[], Awaitable[None]]] = []
        self._trying = Trying(self.settings.give_up_after, self.health)
        self._app: FastStream | None = None
        self._status = 0
        self._stopping = False

    def on(self, *patterns: str) -> Callable[[Handler], Handler]:
        """Hand facts of these names to a coroutine function: `run.failed`, `run.*`, `*`; none: what WEFT_OBSERVE says.

        Raises BadPattern for one that no fact fits.
        """
        wanted = checked(patterns) if patterns else self.settings.patterns

        def kept(handler: Handler) -> Handler:
            self._asked.append(_Asked(wanted, handler))
            return handler

        return kept

    async def handle(self, commit: Recorded) -> None:
        """Hand one commit's facts on, as they are tried in vain again and again until each is done with."""
        for index, fact in enumerate(commit.facts):
            if isinstance(fact, Unknown | Unreadable):
                figures.FACTS.labels("unknown").inc()
                _log.info("passed over", sequence=commit.sequence, type=fact.type)
                continue
            happened = Happened(fact, commit, index)
            asked = [each.handler for each in self._asked if fits(happened.name, each.patterns)]
            done = [await self._trying.done(handler, happened) for handler in asked]
            figures.FACTS.labels("passed_over" if not done else "handled" if all(done) else "dead").inc()

    def on_stop(self, stop: Callable[[], Awaitable[None]]) -> None:
        """Call `stop` when the process ends in order."""
        self._stops.append(stop)

    def run(self, start: Callable[[], None] = lambda: None) -> int:
        """Run until SIGTERM or SIGINT. `start` is called first, and may raise BadSetting.

        Returns the exit status: 0 it was asked to stop, 1 a failure, 2 a setting or a credential that can't be used.
        """
        settings = self.settings
        try:
            name, _ = settings.credential()
            logs.configure("observer", name, settings.log_level, settings.log_format)
            start()
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                return runner.run(self._live(name))
        except BadSetting as error:
            logs.configure("observer", "-", settings.log_level, settings.log_format)
            _log.error("can't start", why=str(error))
            return BAD_SETTINGS

    async def _live(self, name: str) -> int:
        settings = self.settings
        self.health.set_ready("place", False)
        broker = self._broker(name)
        broker.subscriber(**place(name))(self._take)
        self._app = app = FastStream(broker, logger=None)
        app.after_startup(self._ready)
        app.on_shutdown(self._stop)
        for stop in self._stops:
            app.after_shutdown(stop)
        http = web.server(web.app(self.health), settings.http_host, settings.http_port)
        running = [asyncio.create_task(app.run(), name="observer"), asyncio.create_task(http.serve(), name="http")]
        if settings.lifeline_fd is not None:
            running.append(asyncio.create_task(lifeline_closed(settings.lifeline_fd), name="lifeline"))
        done, left = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=settings.stop_timeout)
        for task in done:
            if (error := task.exception()) is not None:
                _log.error("ended", part=task.get_name(), exc_info=error)
                return 1
        _log.info("stops")
        return self._status

    def _broker(self, name: str) -> NatsBroker:
        settings = self.settings
        _, credentials = settings.credential()
        return make_place_broker(
            name,
            settings.nats_url,
            credentials,
            settings.nats_authority,
            self.health,
            self._closed,
            self._place_is,
            self._died,
        )

    async def _take(self, commit: NoCast[Recorded | None], message: NatsMessage) -> None:
        if commit is not None:
            await self.handle(commit)
        parts = message.raw_message.reply.split(".")
        figures.POSITION.set(int(parts[5]))
        figures.BEHIND.set(int(parts[8]))

    async def _ready(self) -> None:
        self.health.set_ready("place", True)
        _log.info("listening")

    async def _stop(self) -> None:
        self._stopping = True

    def _place_is(self, there: bool) -> None:
        why = "it was removed, or nobody read from it for as long as it is kept: `weft observers remove`, then `add`"
        self.health.set("place", None if there else f"the place in the log is gone: {why}", own=False)
        self.health.set_ready("place", there)
        if there:
            _log.info("the place in the log is there again")
        else:
            _log.error("the place in the log is gone", why=why)

    def _died(self, error: BaseException) -> None:
        """Nothing comes from the place any more: better a new start than one that is deaf."""
        _log.error("reading the log has ended", exc_info=error)
        self._closed()

    def _closed(self) -> None:
        """The server has ended the connection for good."""
        if self._app is not None and not self._stopping:
            self._status = 1
            self._app.exit()
