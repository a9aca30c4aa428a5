"""What it costs to find the model of a request: where it names a model, and where it names an alias.

    python bench/aliases.py [--nodes 1000] [--replicas 4] [--requests 20000]

The gateway's own directory, pool and choice, on a fleet in memory; no sockets and no engines.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Callable

from weft_contracts.aliases import AliasRule, AliasTarget
from weft_contracts.facts.name import Aliased
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.run import Loading, Ready
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec, Receipt
from weft_contracts.ids import Incarnation, ModelId, NodeId
from weft_contracts.subjects import name, node, replica, run
from weft_fleet import AliasView, ModelView
from weft_gateway.inbound.inference.alias_routing import AliasRouting
from weft_gateway.inbound.inference.queue import BusyQueue, LoadingLine
from weft_gateway.outbound.connection_pool import ConnectionPool
from weft_gateway.projections.directory import Directory
from weft_testing.fleet_log import FleetLog

SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")
RECEIPT = Receipt(
    position=1, policy="p", policy_digest="d", seed=0, trigger="t", decided_at=0.0, refusals={}, candidates=()
)
FIRST = Incarnation("i-1")


def ready(log: FleetLog, model: ModelId, on: NodeId) -> None:
    """Every replica of a model answers."""
    for id in tuple(log.fleet.models[model].replicas):
        view = log.fleet.replicas[id]
        members = (Member(node=on, rank=0, devices=(DeviceClaim(index=0, bytes=1),)),)
        place = {"model": model, "revision": 1, "epoch": 1, "members": members}
        log.add(replica(id), Placed.model_validate({**place, "receipt": RECEIPT}))
        fact = {**place, "replica": id, "model_name": "m", "digest": view.digest, "spec": SPEC}
        log.add(node(on), Assigned.model_validate(fact))
        log.add(run(on, id), Loading(epoch=1, incarnation=FIRST))
        said = Ready(epoch=1, incarnation=FIRST, port=1, engine="simulated", engine_version="1")
        log.add(run(on, id), said)


def measure(what: str, look: Callable[[], object], count: int) -> None:
    """Print a look's microseconds: the least of three rounds."""
    rounds: list[float] = []
    for _ in range(3):
        begun = time.process_time()
        for _ in range(count):
            look()
        rounds.append((time.process_time() - begun) / count)
    print(f"{what:<58}{1e6 * min(rounds):>8.2f} µs CPU   load average {os.getloadavg()[0]:.1f}")


async def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--replicas", type=int, default=4, help="of each model")
    parser.add_argument("--requests", type=int, default=20_000)
    given = parser.parse_args()
    log = FleetLog()
    nodes = [log.node(f"{number}", 1 << 34) for number in range(given.nodes)]
    models = [log.model(f"model-{number}", SPEC, replicas=given.replicas) for number in range(3)]
    for model in models[:2]:
        ready(log, model, nodes[0])
    ways: dict[str, tuple[AliasRule, list[ModelId]]] = {
        "shares": ("weights", models[:2]),
        "ordered": ("order", models[:2]),
        "cold": ("order", models[2:]),
    }
    for called, (rule, ids) in ways.items():
        targets = tuple(AliasTarget(model=id) for id in ids)
        log.add(name("model", called), Aliased(name=called, rule=rule, targets=targets))
    directory = Directory()
    log.listen(lambda commit: directory.fold([commit]))
    pool = ConnectionPool("bench", directory.endpoints, lambda: directory.version, lambda _: None)
    routing = AliasRouting(directory, pool, BusyQueue(256), LoadingLine(1024))

    def found(called: str) -> ModelView:
        view = directory.model_or_alias_for(called)
        return routing.begin(view, lambda _: None, None)[0] if isinstance(view, AliasView) else view

    measure("a model, by its name", lambda: directory.model_for("model-0"), given.requests)
    measure("a model, where the name might be an alias's", lambda: found("model-0"), given.requests)
    measure(f"an alias of two by weights, {given.replicas} replicas each", lambda: found("shares"), given.requests)
    measure(f"an alias of two in order, {given.replicas} replicas each", lambda: found("ordered"), given.requests)
    few = max(1, given.requests // 100)
    measure(f"an alias of which none answers, {given.nodes} nodes", lambda: found("cold"), few)
    await pool.close()


if __name__ == "__main__":
    asyncio.run(main())
