"""The scheduler as a process, on a real NATS server with the mesh's accounts and permissions."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

from weft_contracts.commit import Commit, Recorded
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ReplicaId
from weft_contracts.subjects import node
from weft_eventlog import EventLog
from weft_fleet import Fleet
from weft_testing.fleet_log import FleetLog
from weft_testing.mesh_server import MeshServer

GIB = 1 << 30
SPEC = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"memory_bytes": GIB})
PATIENCE = 30.0


@asynccontextmanager
async def scheduler(mesh: MeshServer) -> AsyncGenerator[asyncio.subprocess.Process]:
    """A scheduler that is stopped in order at the end."""
    env = os.environ | {
        "WEFT_NATS_URL": mesh.url,
        "WEFT_NATS_CREDENTIALS": str(mesh.credentials_file("scheduler")),
        "WEFT_LOG_FORMAT": "json",
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "weft_scheduler", env=env)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0


async def put(log: EventLog, records: list[Recorded]) -> None:
    """What other services would have said."""
    for recorded in records:
        await log.append(Commit(recorded.aggregate, recorded.facts, None, recorded.cause))


async def fleet_when_placed(log: EventLog, *replicas: ReplicaId) -> tuple[Fleet, list[Recorded]]:
    """The fleet folded from the real log, once these replicas have their places."""
    async with asyncio.timeout(PATIENCE):
        while True:
            fleet, records = Fleet(), [recorded async for recorded in log.read()]
            for recorded in records:
                fleet.apply(recorded)
            if all(id in fleet.replicas and fleet.replicas[id].placed for id in replicas):
                return fleet, records
            await asyncio.sleep(0.1)


async def test_a_scheduler_places_what_the_log_wants_and_goes_on_after_a_restart(mesh_server: MeshServer):
    # given a mesh with one node and a model that wants two replicas
    log = EventLog(await mesh_server.root(), actor="test")
    fleet_log = FleetLog()
    a = fleet_log.node("a", 8 * GIB)
    toy = fleet_log.model("toy", SPEC, replicas=2)
    await put(log, fleet_log.commits)
    one, two, three = (ReplicaId(f"m-toy-{number}") for number in (1, 2, 3))
    # when a scheduler runs
    async with scheduler(mesh_server):
        fleet, records = await fleet_when_placed(log, one, two)
    # then both are assigned by one commit, which the wish caused
    assert (one, two) == fleet.replicas_on(a)
    wish = next(r for r in records if r.event_id == fleet.replicas[one].cause.causation_id)
    (assigned,) = [r for r in records if r.aggregate == node(a) and r.actor == "scheduler"]
    assert wish.event_id == assigned.causation_id
    assert wish.correlation_id == assigned.correlation_id
    # and a scheduler started anew places what came meanwhile, and nothing twice
    said = len(fleet_log.commits)
    fleet_log.scale(toy, 1)
    await put(log, [replace(recorded) for recorded in fleet_log.commits[said:]])
    async with scheduler(mesh_server):
        fleet, records = await fleet_when_placed(log, three)
    assert {0: 3 * GIB} == fleet.claims(a)
    assert 3 == sum(recorded.aggregate.kind == "replica" for recorded in records)
    assert [] == mesh_server.errors
