"""A worker's own part of the log: once each, in order, over restarts, and nothing of others."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit, Guard, Recorded
from weft_contracts.facts import node, run
from weft_contracts.ids import CorrelationId, Incarnation, NodeId, ReplicaId
from weft_contracts.topology import worker_durable
from weft_eventlog import Conflict, EventLog, WorkerLog, apply_durable
from weft_testing.mesh_server import MeshServer

ONE, TWO = NodeId("n-one"), NodeId("n-two")
RUN = subjects.run(ONE, ReplicaId("m-a-1"))
CAUSE = Cause(CorrelationId("c"))


class Worker:
    def __init__(self, log: WorkerLog) -> None:
        self.log = log
        self.folded: list[Recorded] = []
        self.task = asyncio.create_task(log.run(self.folded.append))

    async def folds(self, count: int) -> list[int]:
        async with asyncio.timeout(40):
            while len(self.folded) < count:
                await asyncio.sleep(0.05)
        return [recorded.sequence for recorded in self.folded]


@pytest.fixture
async def root(mesh_server: MeshServer) -> EventLog:
    client = await mesh_server.root()
    await apply_durable(client, worker_durable(ONE))
    return EventLog(client, actor="root")


@pytest.fixture
async def worker(root: EventLog, mesh_server: MeshServer) -> AsyncIterator[Worker]:
    worker = Worker(WorkerLog(await mesh_server.worker(ONE), ONE))
    yield worker
    worker.task.cancel()


async def note(root: EventLog, id: NodeId) -> None:
    await root.append(Commit(subjects.node(id), (node.Healthy(),), None, CAUSE))


def loading(expected: int) -> Commit:
    return Commit(RUN, (run.Loading(epoch=1, incarnation=Incarnation("i")),), Guard(RUN, expected), CAUSE)


async def test_a_worker_folds_its_own_part_and_nothing_of_others(root: EventLog, worker: Worker) -> None:
    for id in (ONE, TWO, ONE):
        await note(root, id)
    assert [1, 3] == await worker.folds(2)


async def test_a_worker_appends_its_runs_under_a_guard(root: EventLog, worker: Worker) -> None:
    assert 1 == await worker.log.append(loading(0))
    with pytest.raises(Conflict):
        await worker.log.append(loading(0))
    assert [1] == await worker.folds(1)


async def test_a_new_process_of_the_same_node_folds_everything_again(
    root: EventLog, worker: Worker, mesh_server: MeshServer
) -> None:
    await note(root, ONE)
    await worker.folds(1)
    worker.task.cancel()
    again = Worker(WorkerLog(await mesh_server.worker(ONE), ONE))
    await note(root, ONE)
    assert [1, 2] == await again.folds(2)
    again.task.cancel()


@pytest.mark.usefixtures("short_tries")
async def test_a_restart_of_the_server_loses_and_repeats_nothing_for_a_worker(
    root: EventLog, worker: Worker, mesh_server: MeshServer
) -> None:
    await note(root, ONE)
    await worker.folds(1)
    mesh_server.restart()
    await note(root, ONE)
    assert [1, 2] == await worker.folds(2)
