"""Reading between two positions is whole, however slowly it comes through."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit
from weft_contracts.facts import node
from weft_contracts.ids import CorrelationId, NodeId
from weft_eventlog import EventLog
from weft_testing.mesh_server import MeshServer

A, B = subjects.node(NodeId("n-a")), subjects.node(NodeId("n-b"))
CAUSE = Cause(CorrelationId("c"))


def healthy(aggregate: subjects.Aggregate) -> Commit:
    return Commit(aggregate, (node.Healthy(),), None, CAUSE)


@pytest.fixture
async def log(mesh_server: MeshServer) -> EventLog:
    log = EventLog(await mesh_server.service("registry"), actor="test")
    for aggregate in (A, B, A, B):
        await log.append(healthy(aggregate))
    return log


async def test_what_is_delivered_and_not_yet_through_is_waited_for(
    log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The consumer says that nothing is pending: all is on its way."""
    subscribe = log._js.subscribe

    async def slow(*args: Any, cb: Any, **kwargs: Any) -> Any:
        async def later(message: Any) -> None:
            await asyncio.sleep(0.1)
            await cb(message)

        return await subscribe(*args, cb=later, **kwargs)

    monkeypatch.setattr(log._js, "subscribe", slow)
    assert [1, 2, 3, 4] == [commit.sequence async for commit in log.read()]
    assert [1, 3] == [commit.sequence async for commit in log.read(A.filter)]


@pytest.mark.parametrize(
    ("filters", "after", "upto", "expected"),
    [
        ((), 0, None, [1, 2, 3, 4]),
        ((), 1, 3, [2, 3]),
        ((A.filter,), 0, None, [1, 3]),
        ((A.filter,), 0, 2, [1]),
        ((A.filter,), 3, None, []),
        ((A.filter, B.filter), 1, None, [2, 3, 4]),
        (("weft.ev.model.>",), 0, None, []),
        ((), 4, None, []),
        ((), 9, None, []),
    ],
)
async def test_a_read_gives_its_filters_commits_between_its_positions(
    log: EventLog, filters: tuple[str, ...], after: int, upto: int | None, expected: list[int]
) -> None:
    assert expected == [commit.sequence async for commit in log.read(*filters, after=after, upto=upto)]


async def test_a_batch_is_sent_again_where_the_server_has_no_leader_yet(
    log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for seconds after a leader's death: code 503."""
    request, refusals = log._client.request, [{"code": 503, "err_code": 10008, "description": "unavailable"}]

    async def refusing(*args: Any, **kwargs: Any) -> Any:
        if "Nats-Batch-Commit" in (kwargs.get("headers") or {}) and refusals:
            return SimpleNamespace(data=json.dumps({"error": refusals.pop()}).encode())
        return await request(*args, **kwargs)

    monkeypatch.setattr(log._client, "request", refusing)
    assert (5, 6) == await log.append(healthy(A), healthy(B))
    assert [] == refusals
