"""An OpenAI-compatible server as an engine: what it is asked goes to the server, and its answers come as they are made.

It computes nothing and holds no model. Many replicas of such may ask one server; each keeps its own bounds.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, Self

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Embeddings, EmbedInput, EngineFacts, EngineLoad, LoadFailed, RequestRefused, Ticket

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
from weft_engine.waiting_line import CallLine, RequestLine

TICK_S: Final = 1.0
LINGER_S: Final = 5.0
"""From an answer's last event until its connection must be free again."""

log = logging.getLogger("weft.engine")


class Sending:
    """A request that waits to be sent, or was."""

    __slots__ = ("asked", "request", "sent", "ticket")

    def __init__(self, request: pb.Submit, asked: Asked, ticket: Ticket) -> None:
        self.request = request
        self.asked = asked
        self.ticket = ticket
        self.sent: tuple[Answer, Exchange] | None = None


class OpenAIServer:
    """Sends at most `concurrency` requests at once; the rest waits here, where a cancel costs the server nothing."""

    def __init__(self, launch: Launch, settings: OpenAISettings, http: OpenAIHttp, rate: MinuteRate) -> None:
        self._settings = settings
        self._http = http
        self._rate = rate
        self._loop = asyncio.get_running_loop()
        self._vectors = ServerVectors(http, settings)
        self._health = ServerHealth(http, settings, self._may_send)
        self._context_tokens = launch.context_tokens
        self._concurrency = launch.concurrency
        self._line: RequestLine[Sending] = RequestLine(launch.concurrency, launch.max_waiting, self._send)
        self._calls = CallLine(launch.concurrency, launch.max_waiting)
        self._lingering: dict[int, tuple[Exchange, float]] = {}
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
        sending = Sending(request, asked_of(request, prompt, self._settings), ticket)
        self._line.refuse_full()
        self._refuse_too_many()
        self._line.enter(ticket, sending)

    def cancel(self, ticket: Ticket) -> None:
        sending = self._line.cancel(ticket)
        if sending is not None and sending.sent is not None:
            answer, exchange = sending.sent
            exchange.cancel()
            answer.cancel()

    def load(self) -> EngineLoad:
        running, waiting = self._line.running + self._calls.running, self._line.waiting + self._calls.waiting
        return EngineLoad(running, waiting, 0.0, self._steps, self._health.trouble)

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
        self._line.clear_waiting()
        for _, exchange in self._sent():
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
        self._calls.refuse_full()
        self._refuse_too_many()
        async with self._calls.place():
            yield

    def _sent(self) -> list[tuple[Answer, Exchange]]:
        return [each.sent for each in self._line.started.values() if each.sent is not None]

    def _send(self, sending: Sending) -> None:
        http, asked = self._http, sending.asked
        answer = Answer(
            http.name, sending.request, asked, sending.ticket, self._context_tokens, self._over, http.hidden
        )
        sending.sent = (answer, http.begin("POST", asked.path, asked.body, answer))

    def _over(self, answer: Answer, error: ServerError | None) -> None:
        """A ticket has ended: its place is another's."""
        self._steps += answer.steps
        sent = self._line.started[answer.ticket].sent
        assert sent is not None
        _, exchange = sent
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
        self._line.leave(answer.ticket)

    async def _tick(self) -> None:
        """Keep the times that a server has, for ever."""
        settings = self._settings
        while True:
            await asyncio.sleep(TICK_S)
            now = self._loop.time()
            for _, exchange in self._sent():
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
