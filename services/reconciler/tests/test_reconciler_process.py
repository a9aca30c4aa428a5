"""The service as a process on a real log, with its own credentials and permissions."""

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator

import pytest
from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit, Guard, Recorded
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.inspection import Requested
from weft_contracts.facts.machine import FileFound, Reported
from weft_contracts.facts.model import Deleted, Scaled, SpecAccepted
from weft_contracts.facts.name import Claimed
from weft_contracts.facts.node import Approved, Healthy, Joined
from weft_contracts.facts.request import DeleteRequested, DeployRequested, Fulfilled
from weft_contracts.facts.values import Addresses, Backend, Hardware
from weft_contracts.ids import CorrelationId, InspectionId, ModelId, NodeId, RequestId, TokenId
from weft_contracts.subjects import Aggregate
from weft_eventlog import EventLog
from weft_testing.mesh_server import MeshServer

from .story import WEIGHTS, path

NODE = NodeId("n-a")


@pytest.fixture
async def log(mesh_server: MeshServer) -> EventLog:
    return EventLog(await mesh_server.root(), actor="test")


@pytest.fixture
async def reconciler(mesh_server: MeshServer) -> AsyncIterator[Process]:
    settings = {
        "WEFT_NATS_URL": mesh_server.url,
        "WEFT_NATS_CREDENTIALS": str(mesh_server.credentials_file("reconciler")),
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "weft_reconciler", env=os.environ | settings)
    yield process
    if process.returncode is None:
        process.kill()
        await process.wait()


async def say(log: EventLog, aggregate: Aggregate, *facts: Fact) -> int:
    cause = Cause(CorrelationId("c-test"))
    return (await log.append(Commit(aggregate, facts, None, cause)))[0]


async def ask(log: EventLog, id: str, fact: Fact) -> None:
    request = subjects.request(RequestId(id))
    await log.append(Commit(request, (fact,), Guard(request, 0), Cause(CorrelationId(f"c-{id}"))))


async def seen(log: EventLog, kind: type[Fact], *, correlation: str = "", count: int = 1) -> list[Recorded]:
    """The commits that bear a fact of this type, once there are so many."""
    async with asyncio.timeout(30):
        while True:
            found = [
                commit
                async for commit in log.read()
                if any(isinstance(fact, kind) for fact in commit.facts) and correlation in ("", commit.correlation_id)
            ]
            if len(found) >= count:
                return found
            await asyncio.sleep(0.1)


async def test_a_deploy_and_a_delete_go_through_a_real_log(
    mesh_server: MeshServer, log: EventLog, reconciler: Process
) -> None:
    # given a healthy node
    joined = Joined(name="a", public_key="U", token=TokenId("t-1"), addresses=Addresses(host="127.0.0.1", http_port=1))
    await say(log, subjects.node(NODE), joined, Approved(by="t-1"), Healthy())
    llama = Backend(engine="llama.cpp", version="1", vendors=("cpu",))
    reported = Reported(hardware=Hardware(cpus=1, memory=1), backends=(llama,), builtins=(), agent_version="1")
    await say(log, subjects.machine(NODE), reported)

    # when a model is deployed, and the node finds its file
    await ask(log, "q-1", DeployRequested(name="m", spec=path("/x.gguf")))
    inspection = (await _inspections(log))[0]
    found = FileFound(inspection=inspection, source="path:/x.gguf", size=1, weights=WEIGHTS)
    await say(log, subjects.machine(NODE), found)

    # then one batch accepts it, claims its name and fulfils the request, and a replica follows
    fulfilled = (await seen(log, Fulfilled))[0]
    accepted = (await seen(log, SpecAccepted))[0]
    claimed = (await seen(log, Claimed))[0]
    scaled = (await seen(log, Scaled))[0]
    assert [accepted.sequence, claimed.sequence, fulfilled.sequence] == list(
        range(accepted.sequence, accepted.sequence + 3)
    )
    assert accepted.event_id == scaled.causation_id
    assert {"c-q-1"} == {accepted.correlation_id, claimed.correlation_id, scaled.correlation_id}
    assert "reconciler" == scaled.actor

    # and when it is deleted, its replica goes with it, by that alone
    await ask(log, "q-2", DeleteRequested(model=ModelId(accepted.aggregate.key)))
    await seen(log, Fulfilled, correlation="c-q-2")
    assert (Deleted(),) == (await seen(log, Deleted))[0].facts
    assert 1 == len(await seen(log, Scaled))
    assert [] == mesh_server.errors

    # and it stops in order when told to
    reconciler.terminate()
    assert 0 == await asyncio.wait_for(reconciler.wait(), 30)


async def _inspections(log: EventLog) -> list[InspectionId]:
    asked = await seen(log, Requested)
    return [InspectionId(commit.aggregate.key.partition(".")[2]) for commit in asked]
