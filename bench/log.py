"""What the event log costs on this machine: awaited appends, pipelined appends, batches, and folding.

    python bench/log.py [--events 200000]

Starts a real server (`sync_interval: always`) in a temporary folder. Prints rates and CPU time; rates move with the
machine's load, CPU time per commit much less.
"""

import argparse
import asyncio
import resource
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import psutil
from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit, Guard, Recorded
from weft_contracts.facts import run
from weft_contracts.ids import CorrelationId, Incarnation, NodeId, ReplicaId
from weft_eventlog import EventLog, Projection
from weft_fleet import Fleet
from weft_testing.mesh_server import MeshServer, running_mesh_server

CAUSE = Cause(CorrelationId("bench"))


def commit(number: int, expected: int | None = None) -> Commit:
    aggregate = subjects.run(NodeId(f"n-{number % 1000}"), ReplicaId(f"m-bench-{number}"))
    fact = run.Ready(
        epoch=1, incarnation=Incarnation("i-1"), port=4711, engine="llama.cpp", engine_version="1", metadata=()
    )
    return Commit(aggregate, (fact,), None if expected is None else Guard(aggregate, expected), CAUSE)


async def measured(what: str, count: int, work: Callable[[], Awaitable[None]], server: psutil.Process) -> None:
    before, theirs = resource.getrusage(resource.RUSAGE_SELF), sum(server.cpu_times()[:2])
    began = time.perf_counter()
    await work()
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_SELF)
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    theirs = sum(server.cpu_times()[:2]) - theirs
    print(
        f"{what:<44}{count / wall:>10,.0f} /s   own CPU {1e6 * own / count:>7.1f} µs   "
        f"server CPU {1e6 * theirs / count:>7.1f} µs each"
    )


async def main(events: int) -> None:
    """Start a server on a folder that is removed at the end, and print the table."""
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        async with running_mesh_server(Path(folder)) as server:
            await table(server, events)


async def table(server: MeshServer, events: int) -> None:
    """Measure and print line by line."""
    log = EventLog(await server.root(), actor="bench")
    nats = psutil.Process(server.server.pid)

    async def awaited() -> None:
        for number in range(2_000):
            await log.append(commit(number, 0))

    async def batches() -> None:
        for first in range(10_000, 10_000 + 64 * 50, 64):
            await log.append(*(commit(first + n, 0) for n in range(64)))

    async def filled() -> None:
        for first in range(100_000, 100_000 + events, 500):
            await log.append(*(commit(first + n) for n in range(500)))

    async def folded() -> None:
        fleet = Fleet()

        def fold(commits: Sequence[Recorded]) -> None:
            for each in commits:
                fleet.apply(each)

        projection = Projection(log, name="bench", fold=fold)
        task = asyncio.create_task(projection.run())
        await asyncio.wait_for(projection.caught_up.wait(), 600)
        task.cancel()

    await measured("append, guarded, one awaited at a time", 2_000, awaited, nats)
    await measured("append, guarded, batches of 64", 64 * 50, batches, nats)
    await measured("append, unguarded, batches of 500", events, filled, nats)
    await measured("fold into the fleet, from the beginning", await log.head(), folded, nats)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    asyncio.run(main(parser.parse_args().events))
