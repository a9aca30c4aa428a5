"""A gateway's HTTP server in this process: its directory folds a log in the hand, its engines do what a test says."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest_asyncio
import uvicorn
from fastapi import APIRouter
from prometheus_client import CollectorRegistry
from weft_contracts.commit import Recorded
from weft_contracts.facts.model import Scaled, SpecAccepted, Unservable
from weft_contracts.facts.node import Approved, Assigned, Healthy, Joined
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.run import Loading, Ready
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Addresses, DeviceClaim, Member, ModelSpec, Receipt
from weft_contracts.gen import session_pb2 as pb
from weft_contracts.ids import Incarnation, ModelId, NodeId, ReplicaId, TokenId, replica_id
from weft_contracts.subjects import model, node, replica, run
from weft_dataplane import EngineFacts, EngineServicer, HostLife, Identity, Ticket, make_server
from weft_dataplane.scripted import ScriptedEngine
from weft_gateway.domain.access import Policy
from weft_gateway.domain.card_files import CardFiles
from weft_gateway.domain.client_address import networks
from weft_gateway.domain.cors import Cors
from weft_gateway.domain.routing.endpoint_state import EndpointState
from weft_gateway.inbound.http.application import application
from weft_gateway.inbound.http.authenticator import Authenticator
from weft_gateway.inbound.http.error_metrics import ErrorMetrics
from weft_gateway.inbound.http.hot_path_protocol import hot_path_protocol
from weft_gateway.inbound.inference.limits import Limits
from weft_gateway.inbound.inference.model_loads import ModelLoads
from weft_gateway.inbound.inference.prompt_step import PromptStep
from weft_gateway.inbound.inference.prompting import Prompting
from weft_gateway.inbound.inference.request_dispatcher import RequestDispatcher, Waking
from weft_gateway.inbound.inference.unary_dispatcher import UnaryDispatcher
from weft_gateway.inbound.metrics import Metrics
from weft_gateway.inbound.openai.hot_routes import HotRoutes
from weft_gateway.inbound.openai.inference import inference_router
from weft_gateway.inbound.openai.models import OpenAIModels
from weft_gateway.outbound.connection_pool import ConnectionPool
from weft_gateway.projections.directory import Directory
from weft_gateway.projections.keys import Keys
from weft_runtime.web import QuietServer
from weft_testing import HandLog

NODE = NodeId("n-aaaaaaaaaaaaaaaa")
MODEL = ModelId("m-aaaaaaaaaaaaaaaa")
DIGEST = "d-1"
RECEIPT = Receipt(
    position=1, policy="p", policy_digest="d", seed=0, trigger="t", decided_at=0.0, refusals={}, candidates=()
)


class Engine(ScriptedEngine):
    """Remembers the Submits and bears the name of an engine that can resume."""

    def __init__(self) -> None:
        super().__init__()
        self.submits: list[pb.Submit] = []

    @property
    def facts(self) -> EngineFacts:
        return EngineFacts("simulated", "1", 1024, 8)

    def submit(self, request: pb.Submit, prompt: pb.Prompt, ticket: Ticket) -> None:
        self.submits.append(request)
        super().submit(request, prompt, ticket)


class Replica:
    """A served engine under a replica's name."""

    def __init__(self, id: ReplicaId, engine: Engine, server: Any, port: int, beat: "asyncio.Task[None]") -> None:
        self.id = id
        self.node = NODE
        self.engine = engine
        self.port = port
        self._server = server
        self._beat = beat

    async def die(self) -> None:
        """As a killed process: its connections are cut."""
        self._beat.cancel()
        await asyncio.gather(self._beat, return_exceptions=True)
        await self._server.stop(0)


class Front:
    """The HTTP server and what is behind it."""

    def __init__(
        self,
        limits: Limits,
        *,
        max_body: int = 8 << 20,
        slow_client_bytes: int = 1 << 20,
        policy: Policy = "local",
        routers: Sequence[APIRouter] = (),
        noting: bytes | None = None,
        show_replicas: bool = False,
        cors: Cors | None = None,
        trusted: str = "",
        cards: CardFiles | None = None,
        submits: bool = False,
        activations: Waking | None = None,
    ) -> None:
        """`cards`: models' small files; `submits`: prompts are made here wherever that can be."""
        self.log = HandLog()
        self.directory = Directory()
        self.log.listen(self._fold)
        self.registry = CollectorRegistry()
        self.metrics = Metrics(
            self.registry,
            exists=lambda name: self.directory.model(name) is not None,
            stands=self.directory.stands_for,
        )

        def readmitted(state: EndpointState) -> None:
            self.directory.changed.fire()

        self.pool = ConnectionPool("gw", self.directory.endpoints, lambda: self.directory.version, readmitted)
        self.prompting = Prompting(cards, self.directory, asyncio.get_running_loop().time)
        self.dispatcher = RequestDispatcher(
            self.directory,
            self.pool,
            limits,
            self.metrics,
            "gw",
            request_log=noting is not None,
            attribution_key=noting,
            prompts=PromptStep(self.prompting, submits=submits, counted=self.metrics.prompt_made),
            activations=activations,
        )
        self.ready = True
        self.keys = Keys()
        self.authenticator = Authenticator(
            policy, self.keys, lambda: self.ready, cors=cors, trusted_proxies=networks(trusted)
        )
        unary = UnaryDispatcher(self.dispatcher, self.metrics, "gw", request_log=False)
        self.loads = ModelLoads(self.dispatcher, unary)
        hot = HotRoutes(
            self.dispatcher,
            unary,
            self.prompting,
            self.metrics,
            authenticator=self.authenticator,
            max_body=max_body,
            slow_client_bytes=slow_client_bytes,
            show_replicas=show_replicas,
        )
        app = application(
            [inference_router(), OpenAIModels(self.directory, self.prompting.standing).router, *routers],
            [],
            authenticator=self.authenticator,
            max_body=max_body,
            instance="gw",
        )
        self.server = QuietServer(
            uvicorn.Config(
                ErrorMetrics(app, self.metrics.refused),
                http=hot_path_protocol(hot, cors),
                ws="none",
                lifespan="off",
                log_config=None,
                proxy_headers=False,
                host="127.0.0.1",
                port=0,
            )
        )
        self.port = 0
        self.replicas: list[Replica] = []

    def _fold(self, commit: Recorded) -> None:
        self.directory.fold([commit])
        self.keys.fold([commit])

    def a_node(self) -> None:
        addresses = Addresses(host="127.0.0.1", http_port=1)
        joined = Joined(name="node-1", public_key="U", token=TokenId("t-x"), addresses=addresses)
        self.log.given(node(NODE), joined, Approved(by="t-x"), Healthy())

    def a_model(self, name: str = "sim", concurrency: int = 8, *, of: ModelId = MODEL, **more: Any) -> None:
        self.spec = ModelSpec(source=SimulatedSource(), engine="simulated", concurrency=concurrency, **more)
        self.log.given(model(of), SpecAccepted(name=name, revision=1, digest=DIGEST, spec=self.spec))

    def unservable(self, reason: str) -> None:
        self.log.given(model(MODEL), Unservable(revision=1, reason=reason))

    def wants(self, number: int, of: ModelId = MODEL) -> ReplicaId:
        """A replica that has no place yet."""
        id = replica_id(of, number)
        self.log.given(model(of), Scaled(revision=1, add=(id,), why="wanted"))
        return id

    def a_loading_replica(self, number: int = 1, of: ModelId = MODEL) -> ReplicaId:
        id = self.wants(number, of)
        member = Member(node=NODE, rank=0, devices=(DeviceClaim(index=0, bytes=1),))
        self.log.given(replica(id), Placed(model=of, revision=1, epoch=1, members=(member,), receipt=RECEIPT))
        assigned = Assigned(
            replica=id,
            model=of,
            model_name="sim",
            revision=1,
            digest=DIGEST,
            epoch=1,
            members=(member,),
            spec=self.spec,
        )
        self.log.given(node(NODE), assigned)
        self.log.given(run(NODE, id), Loading(epoch=1, incarnation=Incarnation("i-1")))
        return id

    async def served(self, id: ReplicaId, incarnation: str = "i-1") -> Replica:
        """An engine that answers for a replica; the log says so."""
        engine = Engine()
        servicer = EngineServicer(HostLife(Identity(id, incarnation, DIGEST)))
        servicer.attach(engine)
        servicer.life.move(pb.PHASE_READY)
        server, port = make_server(servicer, "127.0.0.1", 0)
        await server.start()
        made = Replica(id, engine, server, port, asyncio.create_task(servicer.beat()))
        self.replicas.append(made)
        self.says_ready(id, port, incarnation)
        return made

    def says_ready(self, id: ReplicaId, port: int, incarnation: str = "i-1") -> None:
        said = Ready(epoch=1, incarnation=Incarnation(incarnation), port=port, engine="simulated", engine_version="1")
        self.log.given(run(NODE, id), said)

    async def a_replica(self, number: int = 1, of: ModelId = MODEL) -> Replica:
        return await self.served(self.a_loading_replica(number, of))

    async def connect(self) -> "EndpointConnection":
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        return EndpointConnection(reader, writer, self.port)


class Answer:
    """One response as it came over the wire."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The data of server-sent events; `[DONE]` as that text."""
        found = [part.removeprefix("data: ") for part in self.body.decode().split("\n\n") if part]
        return [text if text == "[DONE]" else json.loads(text) for text in found]

    @property
    def text(self) -> str:
        """A stream's text."""
        parts = [event["choices"][0]["delta"].get("content", "") for event in self.events if "choices" in event]
        return "".join(parts)


class EndpointConnection:
    """One plain connection: a test sees every byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
        self.reader = reader
        self.writer = writer
        self._host = f"127.0.0.1:{port}"

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def post(
        self,
        body: Any,
        *,
        path: str = "/v1/chat/completions",
        headers: Mapping[str, str] | None = None,
        version: str = "1.1",
    ) -> None:
        """Send one request."""
        self.send(self.request(body, path=path, headers=headers, version=version))

    def request(
        self,
        body: Any,
        *,
        path: str = "/v1/chat/completions",
        headers: Mapping[str, str] | None = None,
        version: str = "1.1",
    ) -> bytes:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = {"host": self._host, "content-type": "application/json", "content-length": str(len(data))}
        lines |= headers or {}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"POST {path} HTTP/{version}\r\n{head}\r\n".encode() + data

    async def head(self) -> tuple[int, dict[str, str]]:
        """A response's status and headers."""
        async with asyncio.timeout(30):
            raw = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        pairs = [line.split(": ", 1) for line in raw[1:] if line]
        return int(raw[0].split()[1]), {name.lower(): value for name, value in pairs}

    async def chunk(self) -> bytes:
        """One chunk of a chunked body; empty: the last."""
        async with asyncio.timeout(30):
            size = int((await self.reader.readuntil(b"\r\n")).strip(), 16)
            data = await self.reader.readexactly(size)
            await self.reader.readexactly(2)
        return data

    async def answer(self) -> Answer:
        """The next whole response."""
        status, headers = await self.head()
        if headers.get("transfer-encoding") == "chunked":
            parts: list[bytes] = []
            while part := await self.chunk():
                parts.append(part)
            body = b"".join(parts)
        elif "content-length" in headers:
            body = await self.reader.readexactly(int(headers["content-length"]))
        else:
            async with asyncio.timeout(30):
                body = await self.reader.read()
        return Answer(status, headers, body)

    async def ended(self) -> bool:
        """Whether the other end has closed, within 30 seconds."""
        async with asyncio.timeout(30):
            try:
                return await self.reader.read(1) == b""
            except ConnectionError:
                return True

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


class Fronts:
    """Makes HTTP servers and ends them with the test."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack

    async def open(
        self, limits: Limits | None = None, *, concurrency: int = 8, policy: Policy = "local", **more: Any
    ) -> Front:
        """An HTTP server with a node and a model; replicas are the test's."""
        front = Front(limits or Limits(loading_wait=30, busy_wait=30, resume_wait=30), policy=policy, **more)
        front.a_node()
        front.a_model(concurrency=concurrency)
        tasks = [asyncio.create_task(work) for work in (front.server.serve(), front.dispatcher.watch())]
        self._stack.push_async_callback(self._end, front, tasks)
        async with asyncio.timeout(30):
            while not front.server.started:
                await asyncio.sleep(0.01)
        front.port = front.server.servers[0].sockets[0].getsockname()[1]
        return front

    async def connect(self, front: Front) -> EndpointConnection:
        """A connection that ends with the test."""
        wire = await front.connect()
        self._stack.push_async_callback(wire.close)
        return wire

    async def _end(self, front: Front, tasks: "list[asyncio.Task[Any]]") -> None:
        await front.dispatcher.finish_all(0)
        await front.prompting.close()
        await front.pool.close()
        front.server.force_exit = front.server.should_exit = True
        await asyncio.wait(tasks[:1], timeout=30)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for made in front.replicas:
            await made.die()


@pytest_asyncio.fixture
async def fronts() -> AsyncGenerator[Fronts]:
    async with AsyncExitStack() as stack:
        yield Fronts(stack)
