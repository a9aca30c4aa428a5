"""What being looked at costs: each `/metrics` of a mesh, and the look of `weft top`, in CPU milliseconds.

    python bench/metrics.py [--nodes 1000] [--models 2000] [--replicas 4000] [--asked 100]

The fleet is folded in this process and told by the real collectors and routes, without sockets. `--asked`: models that
the gateway was asked for, with chats that stream and two outcomes, each by four aliases besides.
"""

import argparse
import asyncio
import logging
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, generate_latest
from status import Mesh, ask, status
from weft_contracts.ids import NodeId
from weft_eventlog import LogSize
from weft_gateway.inbound.admin.load import Load
from weft_gateway.inbound.inference.model_loads import ModelLoads
from weft_gateway.inbound.metrics import Metrics
from weft_gateway.inbound.model_metrics import ModelMetrics
from weft_reconciler.inbound.model_metrics import ModelMetrics as ReplicasOfModels
from weft_registry.inbound.mesh_metrics import MeshMetrics
from weft_runtime.metrics_page import metrics_page
from weft_scheduler.inbound.device_metrics import DeviceMetrics

TIMES = 9
EVERY_S = 15.0
"""Between two scrapes, as prometheus.yml is shipped."""


def main(nodes: int, models: int, replicas: int, asked: int) -> None:
    """Print the figures."""
    mesh = Mesh()
    mesh.grow(nodes, models, replicas)
    print(f"{nodes} nodes of 8 devices, {models} models, {replicas} replicas; the gateway was asked for {asked} models")
    fleet = mesh.directory.fleet
    told = (
        ("gateway", gateway(mesh, asked)),
        ("registry", MeshMetrics(lambda: fleet, lambda: dict.fromkeys(fleet.nodes, 1.0), lambda: size)),
        ("reconciler", ReplicasOfModels(lambda: fleet)),
        ("scheduler", DeviceMetrics(lambda: fleet)),
    )
    size = LogSize(last_sequence=1, bytes=1, limit=1 << 30, copies=1, current=1, stored=1, storage_limit=0)
    print(f"{'page':<12} {'series':>8} {'kB':>8} {'CPU':>10} {'longest':>10} {'in one':>10} {'of a core':>10}")
    for name, what in told:
        registry = what if isinstance(what, CollectorRegistry) else registered(what)
        asyncio.run(scraped(name, registry))
    asyncio.run(looked(mesh, asked))


def registered(collector: Any) -> CollectorRegistry:
    """A registry of one collector."""
    registry = CollectorRegistry()
    registry.register(collector)
    return registry


def gateway(mesh: Mesh, asked: int) -> CollectorRegistry:
    """The gateway's own figures, after each model had a stream that was answered and one that was refused."""
    registry = CollectorRegistry()
    metrics = Metrics(registry, models=asked, exists=lambda name: mesh.directory.model(name) is not None)
    for number in range(asked):
        usage = SimpleNamespace(prompt=50, output=90)
        request: Any = SimpleNamespace(chat=True, model=f"model-{number}", stream=True)
        for outcome in ("ok", "503"):
            for alias in range(4):
                metrics.aliased(f"alias-{alias}-{number}", request.model, outcome)
            choice: Any = SimpleNamespace(way=None, request=request, started_at=0.0, first_at=0.2, usage=usage)
            metrics.request_ended(choice, outcome, 2.0)
    registry.register(ModelMetrics(loads(mesh, asked), metrics.models))
    return registry


def loads(mesh: Mesh, asked: int) -> ModelLoads:
    """1,000 chats in flight, over the models that were asked."""
    of = [f"model-{number % asked}" for number in range(1000)]
    flying = [SimpleNamespace(request=SimpleNamespace(model=model), tokens=9) for model in of]
    none = SimpleNamespace(by_model={})
    tokens = Counter({f"model-{number}": 100 for number in range(asked)})
    dispatcher: Any = SimpleNamespace(
        in_flight=flying, tokens=tokens, queue=none, loading=none, directory=mesh.directory
    )
    unary: Any = SimpleNamespace(in_flight=())
    return ModelLoads(dispatcher, unary)


async def scraped(name: str, registry: CollectorRegistry) -> None:
    """CPU of a scrape; the longest that the loop stood still in it; the same as the library would write it."""
    took, longest = list[float](), list[float]()
    page = b""
    for _ in range(TIMES):
        gaps = list[float]()
        watch = asyncio.create_task(gaps_of_the_loop(gaps))
        await asyncio.sleep(0)
        began = time.process_time()
        page = await metrics_page(registry)
        took.append((time.process_time() - began) * 1000)
        watch.cancel()
        longest.append(max(gaps, default=0.0) * 1000)
    began = time.process_time()
    generate_latest(registry)
    at_once = (time.process_time() - began) * 1000
    series = sum(not line.startswith(b"#") for line in page.splitlines())
    cpu = statistics.median(took)
    print(
        f"{name:<12} {series:>8,} {len(page) / 1000:>8,.0f} {cpu:>7.1f} ms {statistics.median(longest):>7.1f} ms"
        f" {at_once:>7.1f} ms {cpu / EVERY_S / 10:>8.2f} %"
    )


async def gaps_of_the_loop(gaps: list[float]) -> None:
    """How long each turn of the loop took that others had to wait for, in CPU seconds."""
    last = time.process_time()
    while True:
        await asyncio.sleep(0)
        now = time.process_time()
        gaps.append(now - last)
        last = now


async def looked(mesh: Mesh, asked: int) -> None:
    """What `weft top` and Prometheus' list of workers ask, and the first page beside them."""
    connected: Callable[[], bool] = lambda: True  # noqa: E731
    pool: Any = SimpleNamespace(ejections=dict[str, str | None], states=list[Any], state=dict[str, Any]().get)
    projection: Any = SimpleNamespace(position=mesh.position)
    health: Any = SimpleNamespace(problems={}, ready=True)
    app = FastAPI()
    app.include_router(Load("bench", mesh.directory, projection, loads(mesh, asked), pool, health, connected).router)
    app.include_router(status(mesh).router)
    for path in ("/api/load?most=24", "/api/load?most=100", "/api/metrics/workers", "/api/status?view=page"):
        first = await cpu_ms(lambda path=path: ask(app, path=path))
        again = [await cpu_ms(lambda path=path: ask(app, path=path)) for _ in range(TIMES)]
        after = list[float]()
        for turn in range(TIMES):
            change(mesh, turn)
            after.append(await cpu_ms(lambda path=path: ask(app, path=path)))
        _, _, length = await ask(app, path=path)
        print(
            f"{path:<22} first {first:7.1f} ms   again {statistics.median(again):6.1f} ms"
            f"   after a fact {statistics.median(after):6.1f} ms   {length / 1000:,.0f} kB"
        )


def change(mesh: Mesh, turn: int) -> None:
    """One fact about one node."""
    from weft_contracts.facts.node import Healthy, Unhealthy
    from weft_contracts.subjects import node

    mesh.tell(node(NodeId("n-0000000000000000")), Healthy() if turn % 2 else Unhealthy(silent_for=4.0))


async def cpu_ms(what: Callable[[], Awaitable[Any]]) -> float:
    """CPU milliseconds of a call."""
    began = time.process_time()
    await what()
    return (time.process_time() - began) * 1000


if __name__ == "__main__":
    logging.disable(logging.INFO)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--replicas", type=int, default=4000)
    parser.add_argument("--asked", type=int, default=100)
    given = parser.parse_args()
    main(given.nodes, given.models, given.replicas, given.asked)
