"""Appending on a real server: guards, batches, retries that land once."""

import asyncio
from typing import Any

import pytest
from nats.errors import TimeoutError as NatsTimeout
from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit, Guard
from weft_contracts.facts import node
from weft_contracts.ids import CorrelationId, EventId, NodeId
from weft_eventlog import Conflict, EventLog, ForeignDuplicate, new_event_id
from weft_testing.mesh_server import MeshServer

A, B = subjects.node(NodeId("n-a")), subjects.node(NodeId("n-b"))
CAUSE = Cause(CorrelationId("c"))


def commit(aggregate: subjects.Aggregate, expected: int | None, id: EventId | None = None) -> Commit:
    guard = None if expected is None else Guard(aggregate, expected)
    return Commit(aggregate, (node.Healthy(),), guard, CAUSE, id)


@pytest.fixture
async def log(mesh_server: MeshServer) -> EventLog:
    return EventLog(await mesh_server.service("registry"), actor="registry")


async def test_a_commit_lands_under_its_guard(log: EventLog) -> None:
    assert (1,) == await log.append(commit(A, 0))
    assert (2,) == await log.append(commit(B, 0))
    assert (3,) == await log.append(commit(A, 1))


async def test_a_lost_guard_appends_nothing(log: EventLog) -> None:
    await log.append(commit(A, 0))
    with pytest.raises(Conflict, match="n-a moved past 0"):
        await log.append(commit(A, 0))
    assert 1 == await log.head()


async def test_a_batch_lands_whole_or_not_at_all(log: EventLog) -> None:
    # given
    await log.append(commit(A, 0))
    # when one guard of two is lost
    with pytest.raises(Conflict) as refused:
        await log.append(commit(A, 0), commit(B, 0))
    # then nothing landed, and all guards are to be reread
    assert 1 == await log.head()
    assert {A, B} == {guard.aggregate for guard in refused.value.guards}
    # and with right guards both land
    assert (2, 3) == await log.append(commit(A, 1), commit(B, 0))


async def test_a_guard_may_watch_an_aggregate_that_the_commit_does_not_change(log: EventLog) -> None:
    await log.append(commit(A, 0))
    watched = Commit(B, (node.Healthy(),), Guard(A, 0), CAUSE)
    with pytest.raises(Conflict):
        await log.append(watched)


def lose_first_answer(log: EventLog) -> None:
    """The server takes the first message and its answer gets lost."""
    publish, request = log._js.publish, log._client.request
    lost: list[int] = []

    async def losing_publish(*args: Any, **kwargs: Any) -> Any:
        ack = await publish(*args, **kwargs)
        if not lost:
            lost.append(1)
            raise NatsTimeout
        return ack

    async def losing_request(*args: Any, **kwargs: Any) -> Any:
        answer = await request(*args, **kwargs)
        if not lost and kwargs.get("headers", {}).get("Nats-Batch-Commit"):
            lost.append(1)
            raise NatsTimeout
        return answer

    log._js.publish = losing_publish  # type: ignore[method-assign]
    log._client.request = losing_request  # type: ignore[method-assign]


async def test_a_retry_whose_first_try_landed_is_no_conflict_and_lands_once(log: EventLog) -> None:
    lose_first_answer(log)
    assert (1,) == await log.append(commit(A, 0))
    assert 1 == await log.head()


async def test_a_retried_batch_whose_first_try_landed_lands_once(log: EventLog) -> None:
    await log.append(commit(A, 0))
    lose_first_answer(log)
    assert (2, 3) == await log.append(commit(A, 1), commit(B, 0))
    assert 3 == await log.head()


async def test_a_retry_is_found_though_another_writer_followed_it(log: EventLog, mesh_server: MeshServer) -> None:
    # given another writer that appends between our try and our retry
    other = EventLog(await mesh_server.service("registry"), actor="other")
    publish = log._js.publish
    tries: list[int] = []

    async def followed(*args: Any, **kwargs: Any) -> Any:
        ack = await publish(*args, **kwargs)
        tries.append(1)
        if len(tries) == 1:
            await other.append(commit(A, 1))
            raise NatsTimeout
        return ack

    log._js.publish = followed  # type: ignore[method-assign]
    # when, then
    assert (1,) == await log.append(commit(A, 0))
    assert 2 == await log.head()


async def test_an_id_that_another_commit_bears_is_named_and_not_taken_for_ours(log: EventLog) -> None:
    id = new_event_id()
    await log.append(commit(B, None, id))
    with pytest.raises(ForeignDuplicate):
        await log.append(commit(A, None, id))


@pytest.mark.usefixtures("short_tries")
async def test_an_append_rides_out_a_restart_of_the_server(log: EventLog, mesh_server: MeshServer) -> None:
    await log.append(commit(A, 0))
    mesh_server.server.stop()
    appending = asyncio.create_task(log.append(commit(A, 1), timeout=30))
    await asyncio.sleep(0.5)
    mesh_server.start_again()
    assert (2,) == await appending


async def test_a_hundred_writers_of_one_aggregate_each_land_once_in_some_order(log: EventLog) -> None:
    async def write() -> None:
        while True:
            last = 0
            async for recorded in log.read(A.filter):
                last = recorded.sequence
            try:
                await log.append(commit(A, last))
                return
            except Conflict:
                continue

    await asyncio.gather(*(write() for _ in range(8)))
    assert 8 == await log.head()


async def test_an_empty_batch_is_refused(log: EventLog) -> None:
    with pytest.raises(ValueError, match="1 to 1000"):
        await log.append()
