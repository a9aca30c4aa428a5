"""An OpenAI-compatible server as an engine: what it is asked goes to the server, and its answers come as they are made.

It computes nothing and holds no model. Many replicas of such may ask one server; each keeps its own bounds.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, Self

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Embeddings, EmbedInput, Ending, EngineFacts, EngineLoad, LoadFailed, RequestRefused, Ticket

from weft_engine.adapters.openai_answer import Answer
from weft_engine.adapters.openai_errors import ServerError, wait_s
from weft_engine.adapters.openai_health import ServerHealth
from weft_engine.adapters.openai_http import Exchange, KeyMissing, OpenAIHttp
from weft_engine.adapters.openai_rate import MinuteRate
from weft_engine.adapters.openai_request import Asked, asked_of
from weft_engine.adapters.openai_settings import OpenAISettings
from weft_engine.adapters.openai_vectors import ServerVectors
from weft_engine.launch import Launch
from weft_engine.secrets import SecretMissing, resolved

TICK_S: Final = 1.0
LINGER_S: Final = 5.0
"""From an answer's last event until its connection must be free again."""

log = logging.getLogger("weft.engine")


class Waiting:
    """A request that has no place yet."""

    __slots__ = ("asked", "request", "ticket")

    def __init__(self, request: pb.Submit, asked: Asked, ticket: Ticket) -> None:
        self.request = request
        self.asked = asked
        self.ticket = ticket


class OpenAIServer:
    """Sends at most `concurrency` requests at once; the rest waits here, where a cancel costs the server nothing."""

    def __init__(self, launch: Launch, settings: OpenAISettings, http: OpenAIHttp, rate: MinuteRate) -> None:
        self._settings = settings
        self._http = http
        self._rate = rate
        self._loop = asyncio.get_running_loop()
        self._vectors = ServerVectors(http, settings)
        self._health = ServerHealth(http, settings, self._may_send)
        self._max_waiting = launch.max_waiting
        self._context_tokens = launch.context_tokens
        self._concurrency = launch.concurrency
        self._waiting: deque[Waiting] = deque()
        self._running: dict[Ticket, tuple[Answer, Exchange]] = {}
        self._lingering: dict[int, tuple[Exchange, float]] = {}
        self._unary = 0
        self._places = asyncio.Semaphore(launch.concurrency)
        self._steps = 0
        self._left_alone_until = 0.0
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def start(cls, launch: Launch) -> Self:
        """Ready when the server serves the model. Raises LoadFailed."""
        settings = OpenAISettings.of(launch)
        try:
            key_of(settings)
        except KeyMissing as missing:
            raise LoadFailed(str(missing), permanent=True) from None
        http = OpenAIHttp(settings.base_url, lambda: key_of(settings))
        engine = cls(launch, settings, http, MinuteRate(settings.requests_per_minute))
        try:
            await engine._health.first()
        except BaseException:
            http.close()
            raise
        log.info("server", extra={"server": http.name, "model": settings.model, "owner": engine._health.owner})
        engine._tasks = [
            asyncio.create_task(engine._health.watch(), name="openai-health"),
            asyncio.create_task(engine._tick(), name="openai-tick"),
        ]
        return engine

    @property
    def facts(self) -> EngineFacts:
        owner = self._health.owner or "unknown"
        return EngineFacts("openai", owner, self._context_tokens, self._concurrency)

    def submit(self, request: pb.Submit, prompt: pb.Prompt, ticket: Ticket) -> None:
        if self._settings.embeddings:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "this model makes embeddings, it does not write")
        self._refuse_in_trouble()
        waiting = Waiting(request, asked_of(request, prompt, self._settings), ticket)
        if len(self._running) >= self._concurrency and len(self._waiting) >= self._max_waiting:
            raise RequestRefused(pb.FAULT_BUSY, f"{len(self._waiting)} requests wait already")
        self._refuse_too_many()
        if len(self._running) < self._concurrency:
            self._send(waiting)
        else:
            self._waiting.append(waiting)

    def cancel(self, ticket: Ticket) -> None:
        running = self._running.get(ticket)
        if running is not None:
            answer, exchange = running
            exchange.cancel()
            answer.cancel()
            return
        for waiting in self._waiting:
            if waiting.ticket is ticket:
                self._waiting.remove(waiting)
                ticket.finish(Ending(pb.FINISH_CANCELLED))
                return

    def load(self) -> EngineLoad:
        running = len(self._running) + self._unary
        return EngineLoad(running, len(self._waiting), 0.0, self._steps, self._health.trouble)

    async def count(self, prompt: pb.Prompt) -> int:
        raise RequestRefused(pb.FAULT_BAD_REQUEST, "an OpenAI server does not tell how many tokens a prompt has")

    async def embed(self, inputs: list[EmbedInput]) -> Embeddings:
        if not self._settings.embeddings:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "this model writes, it makes no embeddings")
        async with self._place():
            made = await self._vectors.embed(inputs)
        self._health.good()
        return made

    async def rerank(self, query: str, texts: list[str]) -> pb.Scores:
        if not self._settings.embeddings:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "this model writes, it does not rerank")
        async with self._place():
            made = await self._vectors.rerank(query, texts)
        self._health.good()
        return made

    async def canary(self) -> None:
        """Nothing is asked for its host's sake: it looks at its server itself, before it is ready and later."""

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for _, exchange in list(self._running.values()):
            exchange.cancel()
        for exchange, _ in self._lingering.values():
            exchange.cancel()
        self._http.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _refuse_in_trouble(self) -> None:
        if self._health.trouble:
            raise RequestRefused(pb.FAULT_ENGINE, self._health.trouble)

    def _refuse_too_many(self) -> None:
        now = self._loop.time()
        if now < self._left_alone_until:
            raise RequestRefused(pb.FAULT_BUSY, f"the server at {self._http.name} asked to be left alone for a while")
        if not self._rate.take(now):
            most = self._settings.requests_per_minute
            raise RequestRefused(pb.FAULT_BUSY, f"this replica sends its server at most {most} requests a minute")

    def _may_send(self) -> bool:
        return self._rate.take(self._loop.time())

    @asynccontextmanager
    async def _place(self) -> AsyncGenerator[None]:
        """One of the places for calls with one answer. Raises RequestRefused."""
        self._refuse_in_trouble()
        self._refuse_too_many()
        self._unary += 1
        try:
            async with self._places:
                yield
        finally:
            self._unary -= 1

    def _send(self, waiting: Waiting) -> None:
        http, asked = self._http, waiting.asked
        answer = Answer(
            http.name, waiting.request, asked, waiting.ticket, self._context_tokens, self._over, http.hidden
        )
        exchange = http.begin("POST", asked.path, asked.body, answer)
        self._running[waiting.ticket] = (answer, exchange)

    def _over(self, answer: Answer, error: ServerError | None) -> None:
        """A ticket has ended: its place is another's."""
        self._steps += answer.steps
        _, exchange = self._running.pop(answer.ticket)
        if error is None:
            if exchange.connection is not None:
                self._lingering[id(exchange)] = (exchange, self._loop.time() + LINGER_S)
            self._health.good()
        else:
            exchange.cancel()
            if error.doubt:
                self._health.doubt()
            if error.fault == pb.FAULT_BUSY:
                self._left_alone_until = self._loop.time() + wait_s(answer.headers)
        if self._waiting:
            self._send(self._waiting.popleft())

    async def _tick(self) -> None:
        """Keep the times that a server has, for ever. While they are kept nothing stalls here: time is a step."""
        settings = self._settings
        while True:
            await asyncio.sleep(TICK_S)
            self._steps += 1
            now = self._loop.time()
            for _, exchange in list(self._running.values()):
                silent, begun = exchange.silent_s(now)
                if begun and silent > settings.silence_s:
                    exchange.fail(f"said nothing for {settings.silence_s:g} s")
                elif not begun and silent > settings.first_byte_s:
                    exchange.fail(f"did not begin to answer within {settings.first_byte_s:g} s")
            for number, (exchange, until) in list(self._lingering.items()):
                if exchange.connection is None or now > until:
                    del self._lingering[number]
                    exchange.cancel()


def key_of(settings: OpenAISettings) -> str | None:
    """The key that the server wants, as it is now: it may be replaced at any time. Raises KeyMissing."""
    if settings.key is None:
        return None
    name = settings.key.removeprefix("secret:")
    try:
        key = resolved(name)
    except SecretMissing as missing:
        raise KeyMissing(str(missing)) from None
    if not key.isascii() or not key.isprintable() or not key:
        raise KeyMissing(f"the secret {name} is no key: want printable ASCII characters")
    return key
