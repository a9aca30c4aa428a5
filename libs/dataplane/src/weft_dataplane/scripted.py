"""For tests of what uses a session: an engine that does what a test tells it, on a real socket."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from weft_contracts.gen import session_pb2 as pb

from weft_dataplane.embeddings import packed
from weft_dataplane.engine import Embeddings, EmbedInput, EngineFacts, EngineLoad, RequestRefused
from weft_dataplane.host_life import HostLife, Identity
from weft_dataplane.servicer import EngineServicer, make_server
from weft_dataplane.session_client import SessionClient, make_hello
from weft_dataplane.ticket import Ending, Ticket

IDENTITY = Identity(replica="m-1", incarnation="i-1", revision_digest="d-1")
HELLO = make_hello("m-1", "i-1", "d-1", "g-1")


class ScriptedEngine:
    """Holds what it is given until the test moves it."""

    def __init__(self) -> None:
        self.tickets: dict[int, Ticket] = {}
        """requests that run, by order of arrival from 1"""
        self._arrived = 0
        self.prompts: list[pb.Prompt] = []
        self.cancelled: list[int] = []
        self.refuse: RequestRefused | None = None
        self.steps = 0
        self.dimensions = 100_000
        self.embedding: list[list[EmbedInput]] = []
        """inputs of calls that it answers, or that were withdrawn while it did"""
        self.may_embed = asyncio.Event()
        self.may_embed.set()
        self.ids_of: Callable[[pb.Prompt], list[int]] | None = None
        """how it makes ids of prompts; None: it doesn't tell"""
        self._moved = asyncio.Event()

    @property
    def facts(self) -> EngineFacts:
        return EngineFacts("scripted", "1", 1024, 8)

    def submit(self, request: pb.Submit, prompt: pb.Prompt, ticket: Ticket) -> None:
        if self.refuse is not None:
            raise self.refuse
        self.prompts.append(prompt)
        self._arrived += 1
        self.tickets[self._arrived] = ticket
        self._moved.set()

    def cancel(self, ticket: Ticket) -> None:
        self.cancelled.append(ticket.number)
        self.tickets = {i: kept for i, kept in self.tickets.items() if kept is not ticket}
        self._moved.set()
        ticket.finish(Ending(pb.FINISH_CANCELLED))

    def load(self) -> EngineLoad:
        return EngineLoad(len(self.tickets), 0, 0.25, self.steps)

    async def count(self, prompt: pb.Prompt) -> int:
        return len(prompt.text or "".join(m.content for m in prompt.chat.messages))

    async def prompt_ids(self, prompt: pb.Prompt) -> list[int] | None:
        return None if self.ids_of is None else self.ids_of(prompt)

    async def embed(self, inputs: list[EmbedInput]) -> Embeddings:
        self.embedding.append(inputs)
        if self.refuse is not None:
            raise self.refuse
        await self.may_embed.wait()
        made = [packed([float(len(each))] * self.dimensions) for each in inputs]
        self.embedding.remove(inputs)
        return Embeddings(made, sum(map(len, inputs)))

    async def rerank(self, query: str, texts: list[str]) -> pb.Scores:
        raise RequestRefused(pb.FAULT_BAD_REQUEST, "this model does not rerank")

    async def close(self) -> None:
        return None

    def step(self, text: str = "a", scores: Sequence[pb.TokenScore] = ()) -> None:
        """One token for each running request."""
        self.steps += 1
        for ticket in list(self.tickets.values()):
            ticket.emit(text, [7], scores)

    def finish_all(self) -> None:
        for ticket in list(self.tickets.values()):
            ticket.finish(Ending(pb.FINISH_STOP, 3, 2, 1))
        self.tickets.clear()

    async def has(self, count: int) -> None:
        """Wait until so many requests have arrived."""
        async with asyncio.timeout(30):
            while len(self.tickets) != count:
                self._moved.clear()
                await self._moved.wait()


class Collector:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.outputs: list[pb.Output] = []
        self.ended = asyncio.Event()

    def __call__(self, output: pb.Output) -> None:
        self.outputs.append(output)
        if output.finish:
            self.ended.set()

    @property
    def text(self) -> str:
        return "".join(output.text for output in self.outputs)

    @property
    def last(self) -> pb.Output:
        return self.outputs[-1]

    async def end(self) -> pb.Output:
        """The last output, within 30 seconds."""
        async with asyncio.timeout(30):
            await self.ended.wait()
        return self.last


class Host:
    """A served scripted engine."""

    def __init__(self, engine: ScriptedEngine, servicer: EngineServicer, port: int) -> None:
        self.engine = engine
        self.servicer = servicer
        self.target = f"127.0.0.1:{port}"

    async def open(self, hello: pb.Hello = HELLO) -> SessionClient:
        return await SessionClient.open(self.target, hello)


@asynccontextmanager
async def served() -> AsyncGenerator[Host, None]:
    """A ready host on a loopback port."""
    engine = ScriptedEngine()
    servicer = EngineServicer(HostLife(IDENTITY))
    servicer.attach(engine)
    servicer.life.move(pb.PHASE_READY)
    server, port = make_server(servicer, "127.0.0.1", 0)
    await server.start()
    beat = asyncio.create_task(servicer.beat())
    try:
        yield Host(engine, servicer, port)
    finally:
        beat.cancel()
        await asyncio.gather(beat, return_exceptions=True)
        await server.stop(0)
