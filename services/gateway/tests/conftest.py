"""A world around a real gateway process: a real log, real engine hosts, and facts as the services would write them."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest_asyncio
from weft_contracts.commit import Cause, Commit
from weft_contracts.digest import revision_digest
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.model import Deleted, Scaled, SpecAccepted
from weft_contracts.facts.node import Approved, Assigned, Healthy, Joined, Unassigned
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.run import Loading, Ready, Stopped
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Addresses, DeviceClaim, Member, ModelSpec, Receipt
from weft_contracts.ids import CorrelationId, Incarnation, ModelId, NodeId, ReplicaId, TokenId, replica_id
from weft_contracts.subjects import Aggregate, model, node, replica, run
from weft_eventlog import EventLog
from weft_servers.port import choose
from weft_servers.postgres_server import PostgresServer
from weft_testing.mesh_server import MeshServer

NODE = NodeId("n-aaaaaaaaaaaaaaaa")
MODEL = ModelId("m-aaaaaaaaaaaaaaaa")
RECEIPT = Receipt(
    position=1, policy="p", policy_digest="d", seed=0, trigger="t", decided_at=0.0, refusals={}, candidates=()
)
START_S = 60.0


class Host:
    """An engine host's process and where it listens."""

    def __init__(self, process: asyncio.subprocess.Process, port: int, incarnation: str) -> None:
        self.process = process
        self.port = port
        self.incarnation = incarnation

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()


class World:
    """Everything that a gateway needs around it."""

    def __init__(self, mesh: MeshServer, folder: Path, postgres: PostgresServer | None) -> None:
        self.mesh = mesh
        self.folder = folder
        self.postgres = postgres
        self.hosts: dict[ReplicaId, Host] = {}
        self.gateways: list[asyncio.subprocess.Process] = []
        self.port = 0
        self.log: EventLog
        self.spec = ModelSpec(source=SimulatedSource(), engine="simulated", concurrency=4)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def tell(self, aggregate: Aggregate, *facts: Fact) -> None:
        """Append facts as some service would."""
        await self.log.append(Commit(aggregate, facts, None, Cause(CorrelationId("c-world"))))

    async def a_node(self, id: NodeId = NODE, *, key: str = "U" + "A" * 55) -> NodeId:
        """A healthy node."""
        joined = Joined(
            name=f"node-{id[-4:]}",
            public_key=key,
            token=TokenId("t-x"),
            addresses=Addresses(host="127.0.0.1", http_port=1),
        )
        await self.tell(node(id), joined, Approved(by="t-x"), Healthy())
        return id

    async def a_model(self, name: str = "sim", *, id: ModelId = MODEL, spec: ModelSpec | None = None) -> ModelId:
        """A model without replicas."""
        self.spec = spec or self.spec
        accepted = SpecAccepted(name=name, revision=1, digest=revision_digest(self.spec), spec=self.spec)
        await self.tell(model(id), accepted)
        return id

    async def a_placed_replica(
        self,
        number: int = 1,
        *,
        of: ModelId = MODEL,
        on: NodeId = NODE,
        devices: tuple[DeviceClaim, ...] = (DeviceClaim(index=0, bytes=1),),
    ) -> ReplicaId:
        """A replica that has its place and is not ready."""
        id = replica_id(of, number)
        member = Member(node=on, rank=0, devices=devices)
        digest = revision_digest(self.spec)
        await self.tell(model(of), Scaled(revision=1, add=(id,), why="wanted"))
        await self.tell(replica(id), Placed(model=of, revision=1, epoch=1, members=(member,), receipt=RECEIPT))
        assigned = Assigned(
            replica=id,
            model=of,
            model_name="sim",
            revision=1,
            digest=digest,
            epoch=1,
            members=(member,),
            spec=self.spec,
        )
        await self.tell(node(on), assigned)
        return id

    async def ready(self, id: ReplicaId, *, on: NodeId = NODE, port: int | None = None, **settings: Any) -> Host:
        """Start the replica's engine host and say that it is ready."""
        incarnation = f"i-{len(self.hosts) + 1}"
        host = await self._host(id, incarnation, settings)
        self.hosts[id] = host
        said = Incarnation(incarnation)
        await self.tell(run(on, id), Loading(epoch=1, incarnation=said))
        await self.tell(
            run(on, id),
            Ready(epoch=1, incarnation=said, port=port or host.port, engine="simulated", engine_version="1"),
        )
        return host

    async def a_ready_replica(self, number: int = 1, **settings: Any) -> ReplicaId:
        """A replica that answers."""
        id = await self.a_placed_replica(number)
        await self.ready(id, **settings)
        return id

    async def stopped(self, id: ReplicaId, *, on: NodeId = NODE) -> None:
        await self.tell(run(on, id), Stopped(epoch=1, why="exited"))

    async def retired(self, id: ReplicaId, *, on: NodeId = NODE) -> None:
        await self.tell(node(on), Unassigned(replica=id, deadline_s=5, why="test"))

    async def deleted(self, id: ModelId = MODEL) -> None:
        await self.tell(model(id), Deleted())

    async def a_gateway(self, **settings: str) -> asyncio.subprocess.Process:
        """A gateway process that is ready; its log lines go to `gateway.log`."""
        process = await self.a_starting_gateway(**settings)
        await self.until(self._is_ready)
        return process

    async def a_starting_gateway(self, **settings: str) -> asyncio.subprocess.Process:
        """A gateway process that may not come up."""
        self.port = self.port or choose()[0]
        env = {
            **{k: v for k, v in os.environ.items() if not k.startswith("WEFT_")},
            "WEFT_NATS_URL": self.mesh.url,
            "WEFT_NATS_CREDENTIALS": str(self.mesh.credentials_file("gateway")),
            "WEFT_HTTP_PORT": str(self.port),
            "WEFT_FINISH_WAIT_S": "2",
            **settings,
        }
        if self.postgres is not None:
            env["WEFT_POSTGRES_URL"] = self.postgres.url
        with (self.folder / "gateway.log").open("ab") as out:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "weft_gateway", env=env, stderr=out, stdout=out
            )
        self.gateways.append(process)
        return process

    def gateway_log(self) -> str:
        return (self.folder / "gateway.log").read_text()

    async def until(self, holds: Any, seconds: float = START_S) -> None:
        """Wait until an async question is answered with something true."""
        async with asyncio.timeout(seconds):
            while not await holds():
                await asyncio.sleep(0.05)

    async def folded(self) -> None:
        """Wait until the gateway has folded all that was told."""
        head = await self.log.head()

        async def there() -> bool:
            async with httpx.AsyncClient(timeout=30) as client:
                return (await client.get(f"{self.url}/api/status")).json()["log"]["position"] >= head

        await self.until(there)

    async def aclose(self) -> None:
        for process in self.gateways:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
                try:
                    await asyncio.wait_for(process.wait(), 30)
                except TimeoutError:
                    process.kill()
                    await process.wait()
        for host in self.hosts.values():
            await host.kill()

    async def _is_ready(self) -> bool:
        process = self.gateways[-1]
        assert process.returncode is None, self.gateway_log()
        async with httpx.AsyncClient(timeout=30) as client:
            try:
                return (await client.get(f"{self.url}/readyz")).status_code == 200
            except httpx.TransportError:
                return False

    async def _host(self, id: ReplicaId, incarnation: str, settings: dict[str, Any]) -> Host:
        launch = {
            "replica": id,
            "incarnation": incarnation,
            "node": NODE,
            "revision_digest": revision_digest(self.spec),
            "engine": "simulated",
            "context_tokens": self.spec.context_tokens,
            "concurrency": self.spec.concurrency,
            "engine_args": {"ms_per_token": 5, **settings},
            "without_agent_s": 600,
        }
        path = self.folder / f"{id}.json"
        path.write_text(json.dumps(launch))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "weft_engine",
            "--launch",
            str(path),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert process.stdout is not None
        async with asyncio.timeout(START_S):
            while line := await process.stdout.readline():
                said = json.loads(line)
                if said["phase"] == "ready":
                    return Host(process, said["port"], incarnation)
        raise AssertionError("the engine host ended before it was ready")


@pytest_asyncio.fixture
async def world(mesh_server: MeshServer, tmp_path: Path) -> AsyncGenerator[World]:
    """A log and room for engine hosts and gateways; no Postgres."""
    made = World(mesh_server, tmp_path, None)
    made.log = EventLog(await mesh_server.root(), actor="test")
    try:
        yield made
    finally:
        await made.aclose()


@pytest_asyncio.fixture
async def world_with_tables(mesh_server: MeshServer, tmp_path: Path, postgres: PostgresServer) -> AsyncGenerator[World]:
    """The same with a Postgres whose tables are empty."""
    from weft_readmodel.connecting import connect

    connection = await connect(postgres.url)
    await connection.execute("drop schema public cascade")
    await connection.execute("create schema public")
    await connection.close()
    made = World(mesh_server, tmp_path, postgres)
    made.log = EventLog(await mesh_server.root(), actor="test")
    try:
        yield made
    finally:
        await made.aclose()
