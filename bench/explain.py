"""What `weft explain` asks of a gateway on a long log: wall milliseconds, and the CPU of gateway and log server.

    python bench/explain.py [--commits 1000000] [--decisions 24]

Fills a real server's log (see `long_log.py`), starts a gateway on it and asks `GET /api/explanations/{ref}` for
decisions from the newest back, evenly, for a model without a replica, for one that has no place, and for a node. Then
the log grows past a further snapshot, the gateway is started again, and the same decisions are asked for. Goal: a
second. Filling a million commits takes minutes and about a gigabyte in the folder for temporary files.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from long_log import SPEC, LongLog
from mesh_cpu import cpu_of
from million import fill
from weft_contracts.commit import Cause, Commit, Guard
from weft_contracts.digest import revision_digest
from weft_contracts.facts.model import Scaled, SpecAccepted
from weft_contracts.ids import CorrelationId, EventId, ModelId, ReplicaId, replica_id
from weft_contracts.subjects import Aggregate, model
from weft_eventlog import EventLog
from weft_testing.mesh_server import MeshServer, running_mesh_server
from weft_testing.service_process import ServiceProcess, mesh_settings, running
from weft_testing.waiting import until

READY_S = 900.0
SNAPSHOT = 10_000
"""Commits between two snapshots of a fold."""
BEHIND = 9_000
"""Commits behind the last snapshot, when the gateway is started again."""
ASLEEP, TOO_LARGE = ModelId("m-asleep0000000000"), ModelId("m-toolarge00000000")


class Cost(NamedTuple):
    """Of one answer, in milliseconds."""

    wall: float
    gateway: float
    """CPU."""
    server: float
    """CPU."""


def cost_of(costs: Sequence[Cost], pick: Callable[[list[float]], float] = statistics.median) -> Cost:
    """Their medians, or what else is picked of each column."""
    return Cost(*(pick(list(column)) for column in zip(*costs, strict=True)))


class Asked:
    """One gateway that is asked, and what each answer cost."""

    def __init__(self, gateway: ServiceProcess, server: psutil.Process) -> None:
        self._gateway = gateway
        self._own = psutil.Process(gateway.process.pid)
        self._server = server

    async def about(self, ref: str) -> tuple[Cost, dict[str, Any]]:
        """What an answer cost, and the answer."""
        own, server, began = cpu_of(self._own), cpu_of(self._server), time.perf_counter()
        status, body = await self._gateway.get(f"/api/explanations/{ref}")
        wall = time.perf_counter() - began
        assert status == 200, body
        await asyncio.sleep(0.02)  # the server's part is over
        costs = wall, cpu_of(self._own) - own, cpu_of(self._server) - server
        return Cost(*(1000 * each for each in costs)), json.loads(body)

    async def one(self, what: str, ref: str) -> None:
        """Ask three times and print the medians."""
        _print(what, cost_of([(await self.about(ref))[0] for _ in range(3)]), "")

    async def decisions(self, refs: Sequence[tuple[int, ReplicaId]]) -> None:
        """Ask for each, and print what those cost that were computed again, and the others."""
        found: dict[bool, list[tuple[int, Cost]]] = {True: [], False: []}
        for sequence, ref in refs:
            cost, answer = await self.about(ref)
            found[answer["replica"]["recomputed"]].append((refs[0][0] - sequence, cost))
        for again, some in found.items():
            if not some:
                continue
            name = "computed again" if again else "by its receipt"
            places = f"{len(some)} decisions, {some[0][0]:,} to {some[-1][0]:,} commits behind the newest"
            costs = [cost for _, cost in some]
            _print(f"{name}, median", cost_of(costs), places)
            _print(f"{name}, most", cost_of(costs, max), places)


def _print(what: str, cost: Cost, more: str) -> None:
    print(
        f"{what:<24} {cost.wall:7.0f} ms wall {cost.gateway:7.0f} ms CPU, server {cost.server:5.0f} ms   "
        f"load {os.getloadavg()[0]:.1f}   {more}",
        flush=True,
    )


def accepted(id: ModelId, memory: int) -> Sequence[Commit]:
    """A model of which one replica needs so much memory; of one that no node has, a replica is wanted."""
    spec = SPEC.model_copy(update={"engine_args": {"memory_bytes": memory}})
    fact = SpecAccepted(name=id[2:], revision=1, digest=revision_digest(spec), spec=spec)
    facts = (fact,) if id == ASLEEP else (fact, Scaled(revision=1, add=(replica_id(id, 1),), why="fewer than wanted"))
    cause = Cause(CorrelationId("c-bench"), EventId("0" * 32))
    return [Commit(model(id), facts, Guard(model(id), 0), cause)]


def spread(last: dict[Aggregate, int], most: int, decisions: int) -> list[tuple[int, ReplicaId]]:
    """Decisions about replicas that are still there, from the newest back, with their places."""
    known = sorted(((at, ReplicaId(each.key)) for each, at in last.items() if each.kind == "replica"), reverse=True)
    live = [each for each in known if known[0][0] - each[0] < most]
    return live[:: max(1, len(live) // decisions)]


async def asked(mesh: MeshServer, folder: Path, long: LongLog, decisions: int, snapshots: int) -> None:
    """Start a gateway, ask, and end it once it has written so many snapshots."""
    async with running(["-m", "weft_gateway"], folder, mesh_settings(mesh, "gateway")) as gateway:
        began = time.perf_counter()

        async def ready() -> bool:
            assert gateway.process.returncode is None, gateway.text()
            return (await gateway.get("/readyz"))[0] == 200

        await until(ready, READY_S)
        print(f"ready after {time.perf_counter() - began:.1f} s")
        one = Asked(gateway, psutil.Process(mesh.server.pid))
        refs = spread(long.last, 20_000, decisions)
        await one.one("the newest decision", refs[0][1])
        await one.decisions(refs)
        await one.one("a model, no replica", ASLEEP[2:])
        await one.one("one that fits nowhere", TOO_LARGE[2:])
        await one.one("a node", "worker-0007")

        async def written() -> bool:
            return gateway.text().count('"snapshot written"') >= snapshots

        await until(written, READY_S)
        await gateway.terminate()


async def main(commits: int, decisions: int) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as name:
        folder = Path(name)
        async with running_mesh_server(folder) as mesh:
            long, log = LongLog(), EventLog(await mesh.root(), actor="bench")
            for id, memory in ((ASLEEP, 4 << 30), (TOO_LARGE, 4 << 50)):
                await log.append(*accepted(id, memory))
            await fill(long, log, commits)
            await asked(mesh, folder, long, decisions, 1)
            await fill(long, log, commits + SNAPSHOT + 2_000)
            async with running(["-m", "weft_gateway"], folder, mesh_settings(mesh, "gateway")) as gateway:
                await until(lambda: _wrote(gateway), READY_S)
                await gateway.terminate()
            await fill(long, log, commits + SNAPSHOT + 2_000 + BEHIND)
            print("started again, from a snapshot")
            await asked(mesh, folder, long, decisions, 0)


async def _wrote(gateway: ServiceProcess) -> bool:
    return '"snapshot written"' in gateway.text()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=1_000_000)
    parser.add_argument("--decisions", type=int, default=24, help="how many are asked for")
    given = parser.parse_args()
    asyncio.run(main(given.commits, given.decisions))
