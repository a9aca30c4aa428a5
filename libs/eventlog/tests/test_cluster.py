"""The log on three servers: what was acknowledged stays, and a retry lands once, also when the leader dies."""

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.errors import TimeoutError as NatsTimeout
from nats.js.errors import APIError
from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit, Guard, Recorded
from weft_contracts.facts import node
from weft_contracts.ids import CorrelationId, EventId, NodeId
from weft_contracts.topology import EVENTS
from weft_eventlog import Conflict, EventLog, LogUnavailable, Projection, apply_topology, guards, new_event_id
from weft_servers import nats_server
from weft_servers.nats_server import NatsServer

pytestmark = pytest.mark.slow
CAUSE = Cause(CorrelationId("c"))
PATIENCE_S = 90.0
"""An election takes 5 to 8 s on a quiet machine."""


@dataclass
class Cluster:
    servers: list[NatsServer]
    clients: list[Client] = field(default_factory=list[Client])

    async def client(self, at: NatsServer | None = None) -> Client:
        urls = [server.url for server in ([at] if at else self.servers)]
        random.shuffle(urls)

        async def quiet(_: Exception) -> None:
            await asyncio.sleep(0)

        client = await nats.connect(
            urls, error_cb=quiet, connect_timeout=5, max_reconnect_attempts=-1, reconnect_time_wait=0.1
        )
        self.clients.append(client)
        return client

    async def log(self, name: str) -> EventLog:
        return EventLog(await self.client(), actor=name)

    async def leader(self) -> NatsServer:
        """The server that leads the log."""
        info = await (await self.client()).jetstream(timeout=30).stream_info(EVENTS.name)
        assert info.cluster is not None
        return next(server for server in self.servers if server.conf.name == info.cluster.leader)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    cluster = Cluster(await asyncio.to_thread(nats_server.start_cluster, tmp_path))
    try:
        await apply_topology(await cluster.client(), servers=3)
        yield cluster
    finally:
        for client in cluster.clients:
            await client.close()
        for server in cluster.servers:
            server.stop()


class Writer:
    """Appends to an aggregate of its own, one commit after the other, and keeps what was acknowledged."""

    def __init__(self, log: EventLog, number: int) -> None:
        self.log = log
        self.aggregate = subjects.node(NodeId(f"n-{number}"))
        self.acknowledged: dict[EventId, int] = {}
        self.last = 0

    async def write(self, batch: int = 1) -> None:
        """Append a batch whose first commit is guarded on the one before; the rest on an aggregate each."""
        ids = [new_event_id() for _ in range(batch)]
        others = [subjects.node(NodeId(f"{self.aggregate.key}-{id[:12]}")) for id in ids[1:]]
        commits = [Commit(self.aggregate, (node.Healthy(),), Guard(self.aggregate, self.last), CAUSE, ids[0])]
        commits += [
            Commit(other, (node.Healthy(),), Guard(other, 0), CAUSE, id)
            for other, id in zip(others, ids[1:], strict=True)
        ]
        sequences = await self.log.append(*commits, timeout=PATIENCE_S)
        self.last = sequences[0]
        self.acknowledged |= dict(zip(ids, sequences, strict=True))


def forgetful(log: EventLog, every: int) -> None:
    """Each so-manieth answer of the server gets lost on its way."""
    publish, request = log._js.publish, log._client.request
    answers = 0

    def lost() -> bool:
        nonlocal answers
        answers += 1
        return answers % every == 0

    async def losing_publish(*args: Any, **kwargs: Any) -> Any:
        ack = await publish(*args, **kwargs)
        if lost():
            raise NatsTimeout
        return ack

    async def losing_request(*args: Any, **kwargs: Any) -> Any:
        answer = await request(*args, **kwargs)
        if "Nats-Batch-Commit" in (kwargs.get("headers") or {}) and lost():
            raise NatsTimeout
        return answer

    log._js.publish = losing_publish  # type: ignore[method-assign]
    log._client.request = losing_request  # type: ignore[method-assign]


def tell_refusals(log: EventLog, codes: set[int]) -> None:
    """The codes with which the server refuses what this log publishes."""
    publish = log._js.publish

    async def telling_publish(*args: Any, **kwargs: Any) -> Any:
        try:
            return await publish(*args, **kwargs)
        except APIError as error:
            codes.add(error.err_code or 0)
            raise

    log._js.publish = telling_publish  # type: ignore[method-assign]


async def everything(log: EventLog) -> list[Recorded]:
    """The whole log. Soon after a death a reader may be given a place on the dead server, and is told so: ask again."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return [recorded async for recorded in log.read()]
            except LogUnavailable:
                await asyncio.sleep(0.5)


def at(commits: list[Recorded]) -> dict[EventId, int]:
    """Sequences by event id; fails where one stands twice."""
    found = {commit.event_id: commit.sequence for commit in commits}
    assert len(commits) == len(found)
    return found


async def test_a_retried_append_lands_once(cluster: Cluster) -> None:
    writers = [Writer(await cluster.log(f"w{n}"), n) for n in range(4)]
    for writer in writers:
        forgetful(writer.log, every=3)

    async def write(writer: Writer) -> None:
        for round in range(30):
            await writer.write(batch=1 + round % 3)

    await asyncio.gather(*(write(writer) for writer in writers))
    acknowledged = {id: sequence for writer in writers for id, sequence in writer.acknowledged.items()}
    assert acknowledged == at(await everything(await cluster.log("reader")))


async def test_of_many_writers_of_one_aggregate_one_wins_each_time(cluster: Cluster) -> None:
    aggregate, logs = subjects.node(NodeId("n-shared")), [await cluster.log(f"w{n}") for n in range(4)]
    won: list[int] = []

    async def write(log: EventLog) -> None:
        while len(won) < 40:
            last = max(won, default=0)
            try:
                won.extend(await log.append(Commit(aggregate, (node.Healthy(),), Guard(aggregate, last), CAUSE)))
            except Conflict:
                await asyncio.sleep(random.uniform(0, 0.02))

    await asyncio.gather(*(write(log) for log in logs))
    assert sorted(won) == [commit.sequence for commit in await everything(logs[0])]


async def test_a_write_in_flight_is_no_conflict_until_it_has_settled(cluster: Cluster) -> None:
    # given two writers of one aggregate at the leader, and followers that take nothing
    leader = await cluster.leader()
    followers = [server.pid for server in cluster.servers if server is not leader]
    aggregate, refused = subjects.node(NodeId("n-slow")), set[int]()
    first, second = [EventLog(await cluster.client(leader), actor=name) for name in ("first", "second")]
    for log in (first, second):
        tell_refusals(log, refused)
    commit = Commit(aggregate, (node.Healthy(),), Guard(aggregate, 0), CAUSE)
    for pid in followers:
        os.kill(pid, signal.SIGSTOP)
    try:
        ours = asyncio.create_task(first.append(commit, timeout=PATIENCE_S))
        await asyncio.sleep(0.5)
        theirs = asyncio.create_task(second.append(commit, timeout=PATIENCE_S))
        # when both have been told that a write is in flight, the first of its own earlier try
        async with asyncio.timeout(PATIENCE_S):
            while not guards.IN_FLIGHT <= refused:
                await asyncio.sleep(0.1)
        # then neither takes it for lost
        assert not ours.done()
        assert not theirs.done()
    finally:
        for pid in followers:
            os.kill(pid, signal.SIGCONT)
    # and when it has settled one of them has won, and the other has lost against it
    ended = await asyncio.wait_for(asyncio.gather(ours, theirs, return_exceptions=True), PATIENCE_S)
    won = [end[0] for end in ended if isinstance(end, tuple)]
    assert [type(end) for end in ended if not isinstance(end, tuple)] == [Conflict]
    assert won == [commit.sequence for commit in await everything(await cluster.log("reader"))]


async def test_a_leader_killed_under_load_loses_nothing_acknowledged(cluster: Cluster) -> None:
    # given writers, and a projection that folds what they write
    writers = [Writer(await cluster.log(f"w{n}"), n) for n in range(4)]
    folded: list[Recorded] = []
    projection = Projection(await cluster.log("folder"), name="test", fold=folded.extend)
    folding = asyncio.create_task(projection.run())
    over = asyncio.Event()

    async def write(writer: Writer, batch: int) -> None:
        while not over.is_set():
            await writer.write(batch)

    writing = [asyncio.create_task(write(writer, 1 + number % 2)) for number, writer in enumerate(writers)]

    async def each_has_written(count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while min(len(writer.acknowledged) for writer in writers) < count:
                await asyncio.sleep(0.1)

    await each_has_written(50)
    # when the leader dies while they write
    os.kill((await cluster.leader()).pid, signal.SIGKILL)
    # then they go on by themselves
    before = max(len(writer.acknowledged) for writer in writers)
    await each_has_written(before + 50)
    over.set()
    await asyncio.wait_for(asyncio.gather(*writing), PATIENCE_S)
    # and what was acknowledged stands where it was said to stand, once
    acknowledged = {id: sequence for writer in writers for id, sequence in writer.acknowledged.items()}
    standing = at(await everything(await cluster.log("reader")))
    assert acknowledged == standing
    # and the projection has folded all of it, once and in order
    await projection.wait_for(max(standing.values()), timeout=PATIENCE_S)
    assert sorted(standing.values()) == [commit.sequence for commit in folded]
    assert projection.halted is None
    folding.cancel()
