"""What `/api/status` costs the gateway, in CPU milliseconds: first, again, with its tag, and after a fact.

    python bench/status.py [--nodes 1000] [--replicas 1000] [--models 50]

The fleet is folded in this process and asked through the real route, without sockets.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from fastapi import FastAPI
from weft_api import Tables
from weft_contracts.commit import Recorded
from weft_contracts.digest import revision_digest
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.model import Scaled, SpecAccepted
from weft_contracts.facts.node import Approved, Assigned, Healthy, Joined, Unhealthy
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.run import Loading, Ready
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Addresses, Backend, Device, DeviceClaim, Hardware, Member, ModelSpec, Receipt
from weft_contracts.ids import CorrelationId, EventId, Incarnation, ModelId, NodeId, TokenId, replica_id
from weft_contracts.subjects import Aggregate, machine, model, node, replica, run
from weft_gateway.domain.progress_board import ProgressBoard
from weft_gateway.inbound.admin.status import Status
from weft_gateway.outbound.log_space import LogSpace
from weft_gateway.projections.directory import Directory

GIB = 1 << 30
SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")
RECEIPT = Receipt(
    position=1,
    policy="p",
    policy_digest="p",
    seed=1,
    trigger="t",
    decided_at=1.0,
    refusals={},
    candidates=(),
)


class Mesh:
    """A directory that is told facts as the log would."""

    def __init__(self) -> None:
        self.directory = Directory()
        self.position = 0

    def tell(self, aggregate: Aggregate, *facts: Fact) -> None:
        self.position += 1
        said = Recorded(
            sequence=self.position,
            aggregate=aggregate,
            facts=facts,
            event_id=EventId(f"{self.position:032x}"),
            correlation_id=CorrelationId("c-bench"),
            causation_id=None,
            actor="bench",
            at=1.0,
        )
        self.directory.fold([said])

    def grow(self, nodes: int, models: int, replicas: int) -> None:
        devices = tuple(
            Device(index=i, vendor="nvidia", name="NVIDIA H100 80GB HBM3", memory=80 * GIB) for i in range(8)
        )
        hardware = Hardware(cpus=96.0, memory=1024 * GIB, disk_free=4096 * GIB, devices=devices)
        backends = (Backend(engine="simulated", version="1", vendors=("cpu",)),)
        for number in range(nodes):
            id = NodeId(f"n-{number:016d}")
            joined = Joined(
                name=f"node-{number}",
                public_key="U" + "A" * 55,
                token=TokenId("t-x"),
                addresses=Addresses(host="10.0.0.1", http_port=1),
            )
            self.tell(node(id), joined, Approved(by="t-x"), Healthy())
            self.tell(machine(id), Reported(hardware=hardware, backends=backends, builtins=(), agent_version="1"))
        for number in range(models):
            accepted = SpecAccepted(name=f"model-{number}", revision=1, digest=revision_digest(SPEC), spec=SPEC)
            self.tell(model(ModelId(f"m-{number:016d}")), accepted)
        for number in range(replicas):
            of, on = ModelId(f"m-{number % models:016d}"), NodeId(f"n-{number % nodes:016d}")
            id = replica_id(of, number // models + 1)
            member = Member(node=on, rank=0, devices=(DeviceClaim(index=0, bytes=GIB),))
            self.tell(model(of), Scaled(revision=1, add=(id,), why="wanted"))
            self.tell(replica(id), Placed(model=of, revision=1, epoch=1, members=(member,), receipt=RECEIPT))
            assigned = Assigned(
                replica=id,
                model=of,
                model_name=f"model-{number % models}",
                revision=1,
                digest=revision_digest(SPEC),
                epoch=1,
                members=(member,),
                spec=SPEC,
            )
            self.tell(node(on), assigned)
            incarnation = Incarnation(f"i-{number:016d}")
            self.tell(run(on, id), Loading(epoch=1, incarnation=incarnation))
            ready = Ready(epoch=1, incarnation=incarnation, port=1, engine="simulated", engine_version="1")
            self.tell(run(on, id), ready)


def status(mesh: Mesh) -> Status:
    """The route over this fleet, with a dispatcher of no requests."""
    caught_up = asyncio.Event()
    caught_up.set()

    class Position:
        halted = None

        @property
        def position(self) -> int:
            return mesh.position

    projection: Any = Position()
    projection.caught_up = caught_up
    pool = SimpleNamespace(ejections=dict[str, str | None])
    waiting = SimpleNamespace(total=0)
    dispatcher: Any = SimpleNamespace(pool=pool, in_flight={}, queue=waiting, loading=waiting)
    health: Any = SimpleNamespace(problems={}, ready=True)
    room = LogSpace(None, lambda: mesh.position)
    off = Tables(state="off", position=0)
    return Status(
        "bench", mesh.directory, projection, dispatcher, health, lambda: True, lambda: off, room, ProgressBoard()
    )


async def ask(app: FastAPI, tag: str | None = None, path: str = "/api/status") -> tuple[int, dict[str, str], int]:
    """Status, headers and the body's length of one GET."""
    path, _, query = path.partition("?")
    found: dict[str, Any] = {"length": 0}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            found["status"] = message["status"]
            found["headers"] = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            found["length"] += len(message.get("body", b""))

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    headers = [(b"if-none-match", tag.encode())] if tag else []
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }
    await app(scope, receive, send)
    return found["status"], found["headers"], found["length"]


async def cpu_ms(what: Callable[[], Awaitable[Any]]) -> float:
    """CPU milliseconds of a call."""
    began = time.process_time()
    await what()
    return (time.process_time() - began) * 1000


async def main(nodes: int, models: int, replicas: int) -> None:
    """Print the figures."""
    mesh = Mesh()
    mesh.grow(nodes, models, replicas)
    app = FastAPI()
    app.include_router(status(mesh).router)
    print(f"{nodes} nodes, {models} models, {replicas} replicas")
    for path in ("/api/status", "/api/status?view=page"):
        first = await cpu_ms(lambda path=path: ask(app, path=path))
        code, headers, length = await ask(app, path=path)
        if code != 200:
            continue
        tag = headers.get("etag")
        again = [await cpu_ms(lambda path=path: ask(app, path=path)) for _ in range(9)]
        same = [await cpu_ms(lambda path=path, tag=tag: ask(app, tag, path)) for _ in range(9)]
        after: list[float] = []
        for turn in range(9):
            mesh.tell(node(NodeId("n-0000000000000000")), Healthy() if turn % 2 else Unhealthy(silent_for=4.0))
            after.append(await cpu_ms(lambda path=path: ask(app, path=path)))
        print(
            f"{path:<22} first {first:7.2f} ms   again {statistics.median(again):7.2f} ms   "
            f"with its tag {statistics.median(same):6.2f} ms   after a fact {statistics.median(after):7.2f} ms   "
            f"{length / 1000:,.0f} kB"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--models", type=int, default=50)
    parser.add_argument("--replicas", type=int, default=1000)
    given = parser.parse_args()
    asyncio.run(main(given.nodes, given.models, given.replicas))
